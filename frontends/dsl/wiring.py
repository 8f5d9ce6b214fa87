"""Add a connection between nodes of a Python network to its graph, as nodes and edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from snnc.compiler.ir.graph import Add, Concat, Conv, Graph, Linear, Operation, Pad, Population, Shape, Slice, Sparse
from snnc.compiler.passes.edit import fresh_name
from snnc.frontends.dsl.connections import Connection
from snnc.frontends.dsl.connections.base import Branch, check_target
from snnc.frontends.dsl.nodes import NetworkNode, NodeGroup, View


@dataclass(frozen=True)
class Stage:
    """One connection of a list, as operations of a graph: its kind, and branches, whose results are summed."""

    kind: str
    branches: tuple[Branch, ...]

    @property
    def least_delay(self) -> int:
        """Delay of the fastest branch, in steps."""
        return min(branch.delay for branch in self.branches)


@dataclass(frozen=True)
class Tap:
    """A port of a graph node, and the delay in steps with which it is read."""

    name: str
    port: str = ""
    delay: int = 0


@dataclass(frozen=True)
class Wiring:
    """Adds the nodes and edges of a connection to `graph`; names of new nodes start with `label`."""

    graph: Graph
    label: str

    def connect(self, stages: Sequence[Stage], source: tuple[NetworkNode, str], target: tuple[NetworkNode, str], delay: int) -> None:
        """Connect a port of `source` through all stages to a port of `target`."""
        tap = replace(self.fetch(*source), delay=delay)
        names = self._names(stages)
        for stage, name in zip(stages[:-1], names[:-1], strict=True):
            tap = self._total(self._branches(tap, stage.branches, name), name)
        self._finish(tap, stages[-1].branches, names[-1], *target)

    def _names(self, stages: Sequence[Stage]) -> list[str]:
        """Return the name of each stage: the label; if there are several stages, followed by the kind, numbered if it occurs again."""
        if len(stages) == 1:
            return [self.label]
        before = [sum(other.kind == stage.kind for other in stages[:number]) for number, stage in enumerate(stages)]
        return [f"{self.label}_{stage.kind}{count + 1 if count else ''}" for stage, count in zip(stages, before, strict=True)]

    def _finish(self, tap: Tap, branches: Sequence[Branch], name: str, node: NetworkNode, port: str) -> None:
        """Connect the last stage to its target; if the weights can be divided by rows, each node of a group gets its own rows."""
        parts = split_rows(branches, node.ranges) if isinstance(node, NodeGroup) else None
        if parts is not None and isinstance(node, NodeGroup):
            for member, part in zip(node.members, parts, strict=True):
                self._finish(tap, part, f"{name}_{member.label}", member, port)
            return
        taps = self._branches(tap, branches, name)
        for end in [self._total(taps, name)] if isinstance(node, View | NodeGroup) else taps:
            self.deliver(end, node, port)

    def fetch(self, node: NetworkNode, port: str) -> Tap:
        """Return a tap of a node, a part of a node, or a group; a part needs Slice nodes, a group a Concat node."""
        match node:
            case View(parent=parent, slices=slices):
                tap = self.fetch(parent, port)
                for ends in slices:
                    tap = self.append(tap, Slice(*ends), f"{self.label}_part")
                return tap
            case NodeGroup(members=members):
                taps = [self.fetch(member, port) for member in members]
                name = self.graph.add(fresh_name(self.graph, f"{self.label}_group"), Concat(0))
                for number, tap in enumerate(taps):
                    self.graph.connect(tap.name, name, source_port=tap.port, target_port=str(number))
                return Tap(name)
            case _:
                return Tap(node.name, port)

    def deliver(self, tap: Tap, node: NetworkNode, port: str) -> None:
        """Connect `tap` to a node, a part of a node, or a group; a part may need a Pad node, a group needs Slice nodes."""
        match node:
            case View(parent=parent, padding=padding):
                padded = self.append(tap, Pad(padding), f"{self.label}_whole") if any(map(any, padding)) else tap
                self.deliver(padded, parent, port)
            case NodeGroup(members=members, ranges=ranges):
                for member, ends in zip(members, ranges, strict=True):
                    self.deliver(self.append(tap, Slice(0, *ends), f"{self.label}_{member.label}"), member, port)
            case _:
                self.graph.connect(tap.name, node.name, source_port=tap.port, target_port=port, delay=tap.delay)

    def append(self, tap: Tap, operation: Operation, wanted: str) -> Tap:
        """Add `operation` after `tap`; `wanted` is its name, with a number if it is taken."""
        name = self.graph.add(fresh_name(self.graph, wanted), operation)
        self.graph.connect(tap.name, name, source_port=tap.port, delay=tap.delay)
        return Tap(name)

    def _branches(self, tap: Tap, branches: Sequence[Branch], name: str) -> list[Tap]:
        """Add the branches of one connection after `tap`; their last operations are called `name`, with numbers if there are several."""
        ends = []
        for number, branch in enumerate(branches, 1):
            branch_name = name if len(branches) == 1 else f"{name}_{number}"
            end = Tap(tap.name, tap.port, tap.delay + branch.delay)
            for operation in branch.operations[:-1]:
                end = self.append(end, operation, f"{branch_name}_{'statistics' if isinstance(operation, Population) else 'flat'}")
            ends.append(self.append(end, branch.operations[-1], branch_name))
        return ends

    def _total(self, taps: Sequence[Tap], name: str) -> Tap:
        if len(taps) == 1:
            return taps[0]
        total = self.graph.add(fresh_name(self.graph, f"{name}_sum"), Add())
        for tap in taps:
            self.graph.connect(tap.name, total, source_port=tap.port, delay=tap.delay)
        return Tap(total)


def build_chain(chain: Sequence[Connection], source: Shape, target: Shape, seed: Sequence[int], where: str) -> list[Stage]:
    """Convert connections in order; each reads the result of the one before, and the last must result in the shape `target`."""
    stages, shape = [], source
    for number, connection in enumerate(chain):
        last = number + 1 == len(chain)
        connection_seed = (*seed, number) if len(chain) > 1 else seed
        text = part_text(where, chain, number)
        stages.append(Stage(connection.public_name.lower(), connection.build(shape, target if last else None, connection_seed, text)))
        shape = target if last else check_target(connection, shape, None, text)
    return stages


def part_text(where: str, chain: Sequence[Connection], number: int) -> str:
    """Return the text by which messages refer to connection `number` of a chain."""
    return where if len(chain) == 1 else f"{where}, part {number + 1} ({chain[number].public_name})"


def split_rows(branches: Sequence[Branch], ranges: Sequence[tuple[int, int]]) -> list[tuple[Branch, ...]] | None:
    """Divide the outputs of `branches` along the first axis into `ranges`, and return the branches of each range.

    Return None if the weight of a branch cannot be divided in this way, if a range would have no weights, or if a branch with a bias would
    have no weights in a range.
    """
    divided = []
    for start, stop in ranges:
        parts = [(branch, _rows(branch.operations[-1], start, stop)) for branch in branches]
        if any(part is None for _, part in parts):
            return None
        filled = [(branch, part) for branch, part in parts if part is not None and part.weight.size]
        if not filled or any(part.bias is not None and not part.weight.size for _, part in parts if part is not None):
            return None
        divided.append(tuple(replace(branch, operations=(*branch.operations[:-1], part)) for branch, part in filled))
    return divided


def _rows(operation: Operation, start: int, stop: int) -> Linear | Conv | Sparse | None:
    """Return the operation for the outputs `start` to `stop` - 1; None if it cannot be divided."""
    match operation:
        case Linear(bias=bias) | Conv(groups=1, bias=bias):
            return replace(operation, weight=operation.weight[start:stop], bias=None if bias is None else bias[start:stop])
        case Sparse(indptr=indptr, bias=bias):
            first, last = int(indptr[start]), int(indptr[stop])
            return replace(
                operation,
                weight=operation.weight[first:last],
                indices=operation.indices[first:last],
                indptr=indptr[start : stop + 1] - indptr[start],
                shape=(stop - start, operation.shape[1]),
                bias=None if bias is None else bias[start:stop],
            )
        case _:
            return None
