"""Load of the links between chips in an exchange, and the time of the busiest link.

Data take the route over the fewest wires. If there are several such routes, the route whose narrowest wire has the most links is chosen; if
several remain, the route whose last wires come first in the target's file (so a file lists straight wires before diagonal ones).

The routes from one chip form a tree, and data for several chips cross each wire of the tree once. A wire of n links carries n times the
bytes of one link, independently in each direction. All links work concurrently: the exchange takes as long as the busiest wire.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.machines.errors import UnreachableChipError
from snnc.compiler.machines.target import Target

Pair: TypeAlias = tuple[int, int]
"""The chips at the two ends of a wire."""


@dataclass(eq=False)
class Flows:
    """Bytes that chips send, by sender and receivers; data for several chips are sent once."""

    bytes: defaultdict[tuple[int, frozenset[int]], float] = field(default_factory=lambda: defaultdict(float))

    def send(self, source: int, receivers: Iterable[int], size: float) -> None:
        """Add `size` bytes that chip `source` sends to every other chip of `receivers`."""
        others = frozenset(receivers) - {source}
        if others and size > 0:
            self.bytes[source, others] += size

    def merge(self, other: Flows) -> None:
        """Add the traffic of `other`."""
        for key, size in other.bytes.items():
            self.bytes[key] += size

    def send_each(self, moved: npt.NDArray[np.float64]) -> None:
        """Add the bytes `moved` that chips (rows) send to single other chips (columns)."""
        for source, receiver in np.argwhere(moved > 0).tolist():
            self.send(source, (receiver,), float(moved[source, receiver]))

    def send_pairs(self, sources: npt.NDArray[np.int64], receivers: npt.NDArray[np.int64], sizes: npt.ArrayLike, chips: int) -> None:
        """Add bytes of transfers between single chips; the arrays have one element for each transfer."""
        moved = np.bincount(sources * chips + receivers, weights=sizes, minlength=chips * chips)
        self.send_each(moved.reshape(chips, chips).astype(np.float64))


@dataclass(frozen=True, eq=False)
class Routes:
    """Routes between the chips of a target."""

    links: Mapping[Pair, int]  # number of links of each wire by its two ends, in both orders; a switch counts as the chip after the last
    bytes_per_cycle: float  # bytes per tile cycle of one link, in one direction
    trees: Mapping[int, Mapping[int, int]]  # sender -> receiver -> the chip before the receiver on the route between them

    def route(self, source: int, receiver: int) -> tuple[Pair, ...]:
        """Return the wires from `source` to `receiver`, in order."""
        wires: list[Pair] = []
        while receiver != source:
            before = self.trees[source][receiver]
            wires.append((before, receiver))
            receiver = before
        return tuple(reversed(wires))

    def load(self, flows: Flows) -> dict[Pair, float]:
        """Return the bytes on every wire in use, by (from, to)."""
        load: defaultdict[Pair, float] = defaultdict(float)
        for (source, receivers), size in flows.bytes.items():
            for wire in dict.fromkeys(wire for receiver in sorted(receivers) for wire in self.route(source, receiver)):
                load[wire] += size
        return dict(load)

    def cycles(self, flows: Flows) -> float:
        """Return the tile cycles of the busiest wire."""
        load = self.load(flows)
        return max((size / self.links[wire] for wire, size in load.items()), default=0.0) / self.bytes_per_cycle


@lru_cache(maxsize=32)
def find_routes(target: Target) -> Routes:
    """Find the routes between all chips of `target`; a chip that cannot be reached raises an UnreachableChipError.

    Examples
    --------
    >>> from snnc.compiler.machines import load_target
    >>> find_routes(load_target("pod16")).route(0, 5)
    ((0, 3), (3, 5))
    """
    if target.chips == 1:
        return Routes({}, 1.0, {0: {}})
    if target.links is None:
        raise UnreachableChipError(f"no links connect the {target.chips} chips of the target {target.name!r}; give it a table [links].")
    links: defaultdict[Pair, int] = defaultdict(int)
    for a, b, count in target.links.wires(target.chips):
        links[a, b] += count
        links[b, a] += count
    neighbours: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in links:
        neighbours[b].append(a)
    trees = {chip: _tree(chip, links, neighbours) for chip in range(target.chips)}
    if any(len(tree.keys() - {target.chips}) < target.chips - 1 for tree in trees.values()):
        raise UnreachableChipError(f"the links of the target {target.name!r} do not connect all its chips; see its table [links].")
    return Routes(dict(links), target.links.bytes_per_second / target.clock_hz, trees)


def _tree(source: int, links: Mapping[Pair, int], neighbours: Mapping[int, list[int]]) -> dict[int, int]:
    """Return the chip before each other chip on its route from `source`; `neighbours` of a chip are in order of preference."""
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
