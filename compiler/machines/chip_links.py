"""The load of the links between chips in one exchange, and the time of the busiest link.

Data takes a shortest route: the fewest wires; then the route whose narrowest wire is widest; then the one whose last wires come first
in the target's file (so a file lists straight wires before diagonal ones). The routes from one chip form a tree, and data for several
chips crosses each wire of the tree once. A wire of n links carries n times the bytes of one, independently in each direction. All links
work at once: the exchange takes as long as the busiest wire.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.machines.errors import UnreachableChipError
from snnc.compiler.machines.target import Target

Pair: TypeAlias = tuple[int, int]


@dataclass(eq=False)
class Flows:
    """Bytes that chips send, by sender and receivers; data for several chips is sent once."""

    bytes: defaultdict[tuple[int, frozenset[int]], float] = field(default_factory=lambda: defaultdict(float))

    def send(self, source: int, receivers: Iterable[int], size: float) -> None:
        """Chip `source` sends the same `size` bytes to every other chip of `receivers`."""
        others = frozenset(receivers) - {source}
        if others and size > 0:
            self.bytes[source, others] += size

    def merge(self, other: Flows) -> None:
        """Add the traffic of `other`."""
        for key, size in other.bytes.items():
            self.bytes[key] += size

    def matrix(self, chips: int) -> npt.NDArray[np.float64]:
        """Bytes that each chip (row) sends to each other (column), every receiver counted."""
        found = np.zeros((chips, chips))
        for (source, receivers), size in self.bytes.items():
            found[source, list(receivers)] += size
        return found

    def renamed(self, names: Mapping[int, int]) -> Flows:
        """The same between other chips: chip c becomes ``names[c]``."""
        found = Flows()
        for (source, receivers), size in self.bytes.items():
            found.send(names[source], (names[chip] for chip in receivers), size)
        return found


@dataclass(frozen=True, eq=False)
class Routes:
    """The routes between the chips of a target.

    Attributes
    ----------
    links
        Links of each wire by its two ends, in both orders; a switch has the number after the last chip.
    bytes_per_cycle
        Bytes that one link carries per tile cycle, in one direction.
    trees
        For each chip, the last intermediate chip on the route to every other one.
    """

    links: Mapping[Pair, int]
    bytes_per_cycle: float
    trees: Mapping[int, Mapping[int, int]]

    def way(self, source: int, receiver: int) -> tuple[Pair, ...]:
        """Wires from `source` to `receiver`, in order."""
        found: list[Pair] = []
        while receiver != source:
            before = self.trees[source][receiver]
            found.append((before, receiver))
            receiver = before
        return tuple(reversed(found))

    def load(self, flows: Flows) -> dict[Pair, float]:
        """Bytes on every wire in use, by (from, to)."""
        found: defaultdict[Pair, float] = defaultdict(float)
        for (source, receivers), size in flows.bytes.items():
            for wire in dict.fromkeys(wire for receiver in sorted(receivers) for wire in self.way(source, receiver)):
                found[wire] += size
        return dict(found)

    def cycles(self, flows: Flows) -> float:
        """Tile cycles of the busiest wire."""
        load = self.load(flows)
        return max((size / self.links[wire] for wire, size in load.items()), default=0.0) / self.bytes_per_cycle


def find_routes(target: Target) -> Routes:
    """Find the routes between all chips of `target`.

    Raises
    ------
    UnreachableChipError
        Some chip cannot be reached.

    Examples
    --------
    >>> from snnc.compiler.machines import load_target
    >>> find_routes(load_target("pod16")).way(0, 5)
    ((0, 3), (3, 5))
    """
    if target.chips == 1:
        return Routes({}, 1.0, {0: {}})
    if target.links is None:
        raise UnreachableChipError(f"no links join the {target.chips} chips of the target {target.name!r}; give it a table [links].")
    links: defaultdict[Pair, int] = defaultdict(int)
    for a, b, count in target.links.wires(target.chips):
        links[a, b] += count
        links[b, a] += count
    neighbours: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in links:
        neighbours[b].append(a)
    trees = {chip: _tree(chip, links, neighbours) for chip in range(target.chips)}
    if any(len(tree.keys() - {target.chips}) < target.chips - 1 for tree in trees.values()):
        raise UnreachableChipError(f"the links of the target {target.name!r} do not join all its chips; see its table [links].")
    return Routes(dict(links), target.links.bytes_per_second / target.clock_hz, trees)


def _tree(source: int, links: Mapping[Pair, int], neighbours: Mapping[int, list[int]]) -> dict[int, int]:
    """Breadth first, level by level; `neighbours` are in order of preference."""
    before: dict[int, int] = {}
    width = {source: max(links.values(), default=0)}
    level = [source]
    while level:
        reached = dict.fromkeys(other for chip in level for other in neighbours.get(chip, ()) if other not in width)
        for other in reached:
            from_ = [chip for chip in neighbours[other] if chip in width]
            before[other] = max(from_, key=lambda chip: min(width[chip], links[chip, other]))
        width |= {other: min(width[before[other]], links[before[other], other]) for other in reached}
        level = list(reached)
    return before
