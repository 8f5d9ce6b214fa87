"""Which tiles each population takes.

Inside a group of chips the populations get contiguous tile ranges such that the busiest tile is as fast as can be: for a bound X,
each population takes the fewest tiles on which no tile needs more than X cycles a step nor more bytes than it has; the smallest X
whose ranges fit is found by bisection. A population stays on one chip unless its memory needs several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from snnc.compiler.mapping.block_cycles import step_cycles
from snnc.compiler.mapping.block_memory import block_bytes, code_bytes_estimate, received_bytes
from snnc.compiler.mapping.grouping import Floats, Ints, ceil_div, neurons_per_tile
from snnc.compiler.mapping.problem import Problem

ROOMY: Final = 0.3
"""Tiles that hold less than this part of what they may are not worth spreading over further tiles."""


@dataclass(frozen=True, eq=False)
class TileRange:
    """Tiles ``[first, first + len(neurons))`` of a population and the neurons on each."""

    first: int
    neurons: Ints

    @property
    def stop(self) -> int:
        """The tile behind the range."""
        return self.first + len(self.neurons)


@dataclass(frozen=True, eq=False)
class Placement:
    """Tile ranges, parallel to the layers of the network, and the chips that are used."""

    ranges: tuple[TileRange, ...]
    chips: int


@dataclass(frozen=True, eq=False)
class Choice:
    """What a layer may do.

    `parts` (a row for each part of a step) and `used` are cycles of a step and bytes of a tile with 1, 2, … neurons on it, neither ever
    falling; `limit` is how many bytes of a tile blocks may fill.
    """

    parts: Floats
    used: Ints
    limit: float
    neurons: int

    @cached_property
    def cycles(self) -> Ints:
        """Cycles of a step, all parts."""
        found: Ints = np.ceil(self.parts.sum(axis=0)).astype(np.int64)
        return found

    @cached_property
    def fit(self) -> int:
        """Neurons that a tile may hold."""
        return int(np.searchsorted(self.used, self.limit, side="right"))

    @property
    def fewest_tiles(self) -> int:
        """Tiles that its memory needs."""
        return int(ceil_div(self.neurons, max(self.fit, 1)))

    @property
    def weight(self) -> float:
        """Work of a step."""
        some = min(self.neurons, 6)
        return float(self.cycles[some - 1]) * self.neurons / some

    def within(self, limit: float) -> Choice:
        """The same with another limit on the bytes of a tile."""
        return replace(self, limit=limit)


def choices(problem: Problem) -> tuple[Choice, ...]:
    """Tabulate every layer, for tiles that blocks may fill."""
    found = []
    for layer in problem.network.layers:
        n = np.arange(1, layer.neurons + 1)
        used = sum(block_bytes(problem, layer, n).values()) + received_bytes(problem, layer) + code_bytes_estimate(problem, layer)
        found.append(
            Choice(
                np.maximum.accumulate(step_cycles(problem, layer, n), axis=1),
                np.maximum.accumulate(used),
                problem.target.tile_bytes,
                layer.neurons,
            )
        )
    return tuple(found)


def chip_counts(problem: Problem, chips: int | None) -> tuple[int, ...]:
    """Numbers of chips to try: `chips`, or powers of two up to all."""
    if chips is not None:
        return (chips,)
    if problem.target.tiles < len(problem.network.layers):
        return (problem.target.chips,)
    return tuple(sorted({*(1 << k for k in range(problem.target.chips.bit_length())), problem.target.chips}))


def placements(problem: Problem, options: Sequence[Choice], chips: int) -> Iterator[Placement]:
    """Placements on at most `chips` chips: with tiles left free for relays, and without."""
    if problem.target.tiles < len(problem.network.layers):
        yield _shared(problem, options)
        return
    relays = len(problem.network.sources) * problem.batch
    for spare in dict.fromkeys((min(relays, problem.target.tiles_per_chip // 3), min(relays // 4, problem.target.tiles_per_chip // 8), 0)):
        for quicken in (False, True):
            placed = _place(problem, options, chips, spare, quicken=quicken)
            if placed is not None:
                yield placed


def _place(problem: Problem, options: Sequence[Choice], chips: int, spare: int, *, quicken: bool) -> Placement | None:
    """Place on `chips` chips, leaving `spare` tiles of each free for relays; None when the memory does not suffice.

    `quicken` spends tiles that are left on the layer that decides some part of the step. That costs fragments, so both are priced.
    """
    if any(option.fit < 1 for option in options):
        return None
    per_chip = problem.target.tiles_per_chip
    groups = _chip_groups(options, chips, per_chip - spare)
    if groups is None:
        return None
    ranges: list[TileRange] = []
    first_chip = 0
    for members, width in groups:
        mine, room = [options[m] for m in members], width * per_chip - spare
        tiles = _allot(mine, room)
        if tiles is None:
            return None
        tiles = _spread(mine, _quicken(mine, tiles, room) if quicken else tiles, room)
        first = first_chip * per_chip
        for member, count in zip(members, tiles, strict=True):
            ranges.append(TileRange(first, neurons_per_tile(options[member].neurons, count)))
            first += count
        first_chip += width
    return Placement(tuple(ranges), first_chip)


def _allot(options: Sequence[Choice], tiles: int) -> list[int] | None:
    """Tiles of each layer: the fewest for the smallest bound on a tile's cycles; None when memory needs more than `tiles`."""
    bounds = np.unique(np.concatenate([option.cycles[: option.fit] for option in options]))
    low, high = 0, len(bounds) - 1
    if sum(_tiles_within(options, int(bounds[high]))) > tiles:
        return None
    while low < high:
        middle = (low + high) // 2
        if min(found := _tiles_within(options, int(bounds[middle]))) > 0 and sum(found) <= tiles:
            high = middle
        else:
            low = middle + 1
    return _tiles_within(options, int(bounds[high]))


def _quicken(options: Sequence[Choice], counts: list[int], tiles: int) -> list[int]:
    """Give tiles that are left, again and again, to the layer that decides the longest part of the step it can still shorten."""
    counts = list(counts)
    while True:
        neurons = [int(ceil_div(o.neurons, count)) for o, count in zip(options, counts, strict=True)]
        longest = np.array([o.parts[:, n - 1] for o, n in zip(options, neurons, strict=True)])
        for part in np.argsort(-longest.max(axis=0), kind="stable"):
            worst = int(longest[:, part].argmax())
            fewer = int(np.searchsorted(options[worst].parts[part], longest[worst, part], side="left"))
            more = int(ceil_div(options[worst].neurons, fewer)) if fewer else tiles + 1
            if sum(counts) - counts[worst] + more <= tiles:
                counts[worst] = more
                break
        else:
            return counts


def _spread(options: Sequence[Choice], counts: list[int], tiles: int) -> list[int]:
    """Give tiles that are left to the layer whose tiles hold most, as long as they hold more than :data:`ROOMY` of what the fullest may."""
    counts = list(counts)
    while True:
        neurons = [int(ceil_div(o.neurons, count)) for o, count in zip(options, counts, strict=True)]
        full = [float(o.used[n - 1] / o.limit) if n > 1 else 0.0 for o, n in zip(options, neurons, strict=True)]
        worst = int(np.argmax(full))
        if full[worst] <= ROOMY:
            return counts
        more = int(ceil_div(options[worst].neurons, neurons[worst] - 1))
        if sum(counts) - counts[worst] + more > tiles:
            return counts
        counts[worst] = more


def _tiles_within(options: Sequence[Choice], bound: int) -> list[int]:
    """Fewest tiles of each layer with at most `bound` cycles a tile; 0 where even one neuron a tile needs more."""
    neurons = [min(int(np.searchsorted(o.cycles, bound, side="right")), o.fit) for o in options]
    return [int(ceil_div(o.neurons, n)) if n else 0 for o, n in zip(options, neurons, strict=True)]


def _chip_groups(options: Sequence[Choice], chips: int, per_chip: int) -> list[tuple[list[int], int]] | None:
    """Cut the layers into consecutive groups, one chip each (more for a layer whose memory needs them), with even work."""
    low, high = 0.0, sum(option.weight for option in options)
    best = _cut(options, high, per_chip)
    if _width(best) > chips:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        groups = _cut(options, middle, per_chip)
        if _width(groups) <= chips:
            best, high = groups, middle
        else:
            low = middle
    return best


def _width(groups: Sequence[tuple[list[int], int]]) -> int:
    return sum(width for _, width in groups)


def _cut(options: Sequence[Choice], bound: float, per_chip: int) -> list[tuple[list[int], int]]:
    """Fill groups in order, a group closed when its work would pass `bound` or its tiles a chip."""
    groups: list[tuple[list[int], int]] = []
    work, tiles = math.inf, 0
    for index, option in enumerate(options):
        if option.fewest_tiles > per_chip:
            useful = min(math.ceil(option.weight / max(bound, 1.0)), option.neurons // per_chip)
            width = max(math.ceil(option.fewest_tiles / per_chip), useful)
            groups.append(([index], width))
            work = math.inf
            continue
        if work + option.weight > bound or tiles + option.fewest_tiles > per_chip:
            groups.append(([], 1))
            work, tiles = 0.0, 0
        groups[-1][0].append(index)
        work, tiles = work + option.weight, tiles + option.fewest_tiles
    return groups


def _shared(problem: Problem, options: Sequence[Choice]) -> Placement:
    """Fewer tiles than populations: consecutive populations share a tile, with even work."""
    tiles = problem.target.tiles
    total, done = sum(option.weight for option in options), 0.0
    ranges = []
    for option in options:
        tile = min(int((done + option.weight / 2) / total * tiles), tiles - 1)
        ranges.append(TileRange(tile, neurons_per_tile(option.neurons, 1)))
        done += option.weight
    return Placement(tuple(ranges), ranges[-1].first // problem.target.tiles_per_chip + 1)
