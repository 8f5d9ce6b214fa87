"""Nodes of a network, parts of nodes, and groups of nodes; connections lead from one of these to another."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snnc.compiler.ir.graph import Shape
from snnc.frontends.dsl.errors import GroupError, ViewError

if TYPE_CHECKING:
    from snnc.frontends.dsl.network import Network


@dataclass(frozen=True, eq=False)
class NetworkNode:
    """A node of a network, usable as an end of connections; ``node[:80]`` is a part of it."""

    name: str  # name in messages and in names of connections
    shape: Shape  # shape of one sample at one step
    network: Network = field(repr=False)  # the network that it belongs to

    def __getitem__(self, index: Any) -> View:
        """Return a part of the node, usable as a source, a target or an output.

        Parameters
        ----------
        index
            A number, a slice without a step, or a tuple of these, one per axis from the first. A number keeps its axis, with size 1.

        Raises
        ------
        ViewError
            The index is outside the shape, or selects nothing.
        """
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) > len(self.shape):
            raise ViewError(f"{self.name!r} has shape {self.shape} and is indexed along {len(parts)} axes.")
        ranges = tuple(_range(self, part, axis) for axis, part in enumerate(parts))
        slices = tuple((axis, *ends) for axis, ends in enumerate(ranges) if ends != (0, self.shape[axis]))
        shape = (*(stop - start for start, stop in ranges), *self.shape[len(ranges) :])
        text = ", ".join(f"{start}:{stop}" for start, stop in ranges)
        return View(f"{self.name}[{text}]", shape, self.network, self, slices)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self.name!r} is a node and not a sequence; connect the node or a part such as node[:80]")

    @property
    def label(self) -> str:
        """The name as a part of other names, without brackets and colons."""
        return re.sub(r"\W+", "_", self.name).strip("_") if isinstance(self, View) else self.name

    @property
    def leaves(self) -> tuple[NetworkNode, ...]:
        """The inputs and populations that the node contains."""
        return (self,)


@dataclass(frozen=True, eq=False)
class View(NetworkNode):
    """A part of a node, selected by slices (axis, start, stop)."""

    parent: NetworkNode
    slices: tuple[tuple[int, int, int], ...]

    @property
    def leaves(self) -> tuple[NetworkNode, ...]:
        """The inputs and populations of the whole node."""
        return self.parent.leaves

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """Zeros (before, after) along each axis that pad the part to the shape of the whole node."""
        ends = {axis: (start, self.parent.shape[axis] - stop) for axis, start, stop in self.slices}
        return tuple(ends.get(axis, (0, 0)) for axis in range(len(self.shape)))


@dataclass(frozen=True, eq=False)
class NodeGroup(NetworkNode):
    """Nodes concatenated along their first axis."""

    members: tuple[NetworkNode, ...]

    @property
    def leaves(self) -> tuple[NetworkNode, ...]:
        """The inputs and populations of all members."""
        return tuple(leaf for member in self.members for leaf in member.leaves)

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Start and stop of each member along the first axis."""
        ranges, start = [], 0
        for member in self.members:
            ranges.append((start, start + member.shape[0]))
            start += member.shape[0]
        return tuple(ranges)


def grouped(network: Network, members: tuple[NetworkNode, ...], name: str | None) -> NodeGroup:
    """Return the group of `members`, or raise a GroupError without members, or if their shapes differ after the first axis."""
    if not members:
        raise GroupError("a group needs at least one node; give net.group(a, b).")
    rest = members[0].shape[1:]
    for member in members:
        if member.shape[1:] != rest:
            raise GroupError(
                f"{members[0].name!r} of shape {members[0].shape} and {member.name!r} of shape {member.shape} cannot be "
                "concatenated; all axes but the first must agree."
            )
    shape = (sum(member.shape[0] for member in members), *rest)
    return NodeGroup(name or "_".join(member.name for member in members), shape, network, members)


def _range(node: NetworkNode, part: Any, axis: int) -> tuple[int, int]:
    length = node.shape[axis]
    try:
        if isinstance(part, slice):
            start, stop, step = part.indices(length)
        else:
            start = operator.index(part)
            start += length if start < 0 else 0
            stop, step = start + 1, 1
    except (TypeError, ValueError):
        raise ViewError(f"{node.name!r} is indexed by {part!r}; give a number or a slice such as [:80].") from None
    if step != 1 or not 0 <= start < stop <= length:
        raise ViewError(
            f"{node.name!r} of shape {node.shape} is indexed by {part!r} along axis {axis}; give a slice without a step that selects one "
            f"or more of its {length} places."
        )
    return start, stop
