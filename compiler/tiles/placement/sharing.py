"""Populations that share tiles: each is placed on a run of tiles, and runs may overlap (docs/decisions/0008-indexed-connections.md).

A superstep waits for its busiest tile, and different populations are busy in different supersteps. From each of two start placements,
one population at a time gets a different cut (into replicas and column groups), width (number of tiles of a replica) or position, as long
as this lowers the cost::

    sum over parts p of the step of  ( mean over tiles of ( cycles of part p on a tile )^n )^(1/n)

first for a small n, for which all busy tiles count, then for larger n, for which the busiest tiles dominate. The parts of a step are
forward, backward, source gradients and update. In one start placement, every population is on as few tiles as possible, from the first
tile on; the other one is the best placement on separate tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Floats, Ints, ceil_div
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.placement.balance import AllocationTable
from snnc.compiler.tiles.placement.choices import Allocation, Choice
from snnc.compiler.tiles.placement.placement import Placement, copied, lay_range
from snnc.compiler.tiles.problem import MappingProblem

POWERS: Final = (2, 3, 4)
"""Base-2 logarithms of the exponents n; a power is computed by repeated squaring."""
ROUNDS: Final = 3
"""Maximum number of rounds over all populations for each exponent."""
COARSE: Final = 40
"""Maximum number of evenly spaced allocations of a population that are tried first; those near the best follow, at smaller spacings."""
NEIGHBOURS: Final = 2
"""Number of allocations tried on either side of the best one each time the spacing is halved."""
IMPROVEMENT: Final = 0.9999
"""A population changes only to an allocation that costs less than this fraction of the present cost."""
ROUNDING_MARGIN: Final = 1 - 1e-9
"""Factor that keeps a bound valid despite rounding."""
FIRST_TILES: Final = 24
"""Number of first tiles that are tried, evenly spaced over a chip; the last one on which the population fits is tried as well."""
REPLICAS: Final = 1
"""Placements in which all populations have one cut and begin at the first tile are tried for this many of the largest replica counts."""
MAX_POPULATIONS: Final = 24
"""Maximum number of populations for which the search runs; with more, it would take many seconds on a laptop."""


@dataclass(frozen=True, eq=False)
class _LoadedAllocation(Allocation):
    @cached_property
    def busiest(self) -> Floats:
        """Cycles of each part on a tile with the larger number of neurons."""
        return self.choice.parts[:, self.neurons - 1]

    @property
    def larger(self) -> int:
        """Number of tiles of a replica that have one neuron more than the others."""
        return self.choice.neurons % self.width

    @cached_property
    def by_size(self) -> Floats:
        """Cycles of each part, and bytes, on a tile with the smaller and with the larger number of neurons: [parts + 1, 2]."""
        neurons = np.array([self.choice.neurons // self.width, self.neurons]) - 1
        return np.concatenate([self.choice.parts[:, neurons], self.choice.used[None, neurons]])

    @cached_property
    def load(self) -> Floats:
        """Cycles of each part, and bytes, on every tile: [parts + 1, tiles]."""
        more = (np.arange(self.width) < self.larger).astype(np.int64)
        return np.tile(self.by_size[:, more], self.choice.cut.replicas)


_Placed: TypeAlias = tuple[_LoadedAllocation, int]
"""An allocation and its first tile."""


def sharing_tiles(
    problem: MappingProblem, options: Sequence[Sequence[Choice]], separate: Iterable[Placement], chips: int, copies: int
) -> list[Placement]:
    """Return placements in which populations share tiles; arguments as for :func:`snnc.compiler.tiles.placement.placement.placements`.

    The result is empty if a copy of the network takes several chips, if it has more populations than :data:`MAX_POPULATIONS` or than the
    target has tiles, or if a population fits on no chip. The best placement of `separate`, on separate tiles, is one start of the search.
    """
    if chips != copies or problem.target.tiles < len(options) or len(options) > MAX_POPULATIONS:
        return []
    tiles = problem.target.tiles_per_chip
    allocations = [_allocations(choices, tiles) for choices in options]
    if not all(allocations):
        return []
    limit = min(choices[0].limit for choices in options)
    places = np.unique(np.linspace(0, tiles, FIRST_TILES, endpoint=False).astype(np.int64))
    shared = []
    for start in _starts(options, allocations, separate, copies):
        for order in (range(len(allocations)), range(len(allocations) - 1, -1, -1)):
            search = _Descent(allocations, tiles, limit, places, start)
            search.run(order)
            shared.append(_placement(problem, search.state, copies))
    return shared + [_placement(problem, state, copies) for state in _everywhere(options, tiles)]


def _placement(problem: MappingProblem, state: Sequence[_Placed], copies: int) -> Placement:
    ranges = [
        lay_range(problem.batch, allocation.choice.neurons, allocation.choice.cut, allocation.width, first) for allocation, first in state
    ]
    return copied(problem, Placement(tuple(ranges), 1, 1, shared=True), 1, copies)


def _everywhere(options: Sequence[Sequence[Choice]], tiles: int) -> Iterator[list[_Placed]]:
    """Yield states in which all populations have the same cut, with many replicas of few samples, and begin at the first tile.

    The largest population uses more than two thirds of the tiles.
    """
    cuts = dict.fromkeys(choice.cut for choices in options for choice in choices)
    for cut in cuts:
        if cut.replicas not in sorted({c.replicas for c in cuts})[-REPLICAS:]:
            continue
        state = []
        for choices in options:
            choice = next((c for c in choices if c.cut == cut), None)
            width = 0 if choice is None else min(tiles // cut.replicas, choice.neurons)
            if choice is not None and width and ceil_div(choice.neurons, width) <= choice.fit:
                state.append((_LoadedAllocation(choice, width), 0))
        if len(state) == len(options) and 3 * cut.replicas * max(allocation.width for allocation, _ in state) > 2 * tiles:
            yield state


def _allocations(choices: Sequence[Choice], tiles: int) -> list[_LoadedAllocation]:
    table = AllocationTable.of(choices).pareto
    return [_LoadedAllocation(choices[int(table.choice[row])], int(table.width[row])) for row in np.flatnonzero(table.tiles <= tiles)]


def _starts(
    options: Sequence[Sequence[Choice]], allocations: Sequence[Sequence[_LoadedAllocation]], separate: Iterable[Placement], copies: int
) -> Iterator[list[_Placed]]:
    yield [(of_population[0], 0) for of_population in allocations]
    best, cycles = None, np.inf
    for placement in separate:
        state = [_as_placed(choices, where, copies) for choices, where in zip(options, placement.ranges, strict=True)]
        longest = float(np.max([allocation.busiest for allocation, _ in state], axis=0).sum())
        if longest < cycles:
            best, cycles = state, longest
    if best is not None:
        yield best


def _as_placed(choices: Sequence[Choice], where: TileRange, copies: int) -> _Placed:
    cut = replace(where.cut, replicas=where.replicas // copies)
    return _LoadedAllocation(next(choice for choice in choices if choice.cut == cut), where.width), where.starts[0]


class _Descent:
    def __init__(
        self, allocations: Sequence[Sequence[_LoadedAllocation]], tiles: int, limit: float, places: Ints, start: Sequence[_Placed]
    ) -> None:
        self.allocations, self.tiles, self.limit, self.places = allocations, tiles, limit, places
        self.state = list(start)
        self.total = np.zeros((len(start[0][0].load), tiles))
        for allocation, first in start:
            self.total[:, first : first + allocation.tiles] += allocation.load
        self.scale = max(float(self.total[:-1].max()), 1.0)

    def run(self, order: Sequence[int]) -> None:
        for power in POWERS:
            for _ in range(ROUNDS):
                before = list(self.state)
                for index in order:
                    self._improve(index, power)
                if self.state == before:
                    break

    def _improve(self, index: int, power: int) -> None:
        """Give one population its best allocation and place, unless this saves too little (:data:`IMPROVEMENT`); keep all others."""
        present, at = self.state[index]
        others = self.total.copy()
        others[:, at : at + present.tiles] -= present.load
        costs = _Costs(others, self.scale, power, self.limit)
        present_cost = float(costs.at(present, np.array([at]))[0])
        best, (allocation, place) = self._best_allocation(self.allocations[index], costs)
        if best >= present_cost * IMPROVEMENT:
            allocation, place = present, at
        self.state[index] = allocation, place
        others[:, place : place + allocation.tiles] += allocation.load
        self.total = others

    def _best_allocation(self, allocations: Sequence[_LoadedAllocation], costs: _Costs) -> tuple[float, _Placed]:
        best_places: dict[int, tuple[float, int]] = {}

        def best_of(numbers: Sequence[int]) -> int:
            """Return the number of the allocation with the least cost; those whose lower bound is too high are not evaluated."""
            least = min((best_places[n][0] for n in numbers if n in best_places), default=math.inf)
            new = [n for n in numbers if n not in best_places]
            bounds = costs.least([allocations[n] for n in new]) if new else np.zeros(0)
            for row in np.argsort(bounds).tolist():
                n = new[row]
                best_places[n] = self._best_place(allocations[n], costs) if bounds[row] <= least else (math.inf, 0)
                least = min(least, best_places[n][0])
            return min(numbers, key=lambda n: best_places[n][0])

        step = 1 << max(0, math.ceil(math.log2(len(allocations) / COARSE)))
        best = best_of(range(0, len(allocations), step))
        while step > 1:
            step //= 2
            best = best_of([n for n in range(best - NEIGHBOURS * step, best + NEIGHBOURS * step + 1, step) if 0 <= n < len(allocations)])
        cost, place = best_places[best]
        return cost, (allocations[best], place)

    def _best_place(self, allocation: _LoadedAllocation, costs: _Costs) -> tuple[float, int]:
        places = np.append(self.places[self.places <= self.tiles - allocation.tiles], self.tiles - allocation.tiles)
        cost_at = costs.at(allocation, places)
        return float(cost_at.min()), int(places[cost_at.argmin()])


class _Costs:
    """Costs of allocations of one population; `others` is the load of the other populations on every tile, [parts + 1, tiles]."""

    def __init__(self, others: Floats, scale: float, power: int, limit: float) -> None:
        self.others, self.scale, self.power, self.limit = others, scale, power, limit
        self._sums = _sums(_power(others[:-1] / scale, power))

    def at(self, allocation: _LoadedAllocation, places: Ints) -> Floats:
        """Return the cost of an allocation at each of `places`; infinite where a tile's memory is too small."""
        fewer = self._with(allocation, 0)
        here = _between(fewer, places, allocation.tiles)
        if allocation.larger:
            runs = places[:, None] + allocation.width * np.arange(allocation.choice.cut.replicas)
            here = here + _between(self._with(allocation, 1) - fewer, runs, allocation.larger).sum(axis=2)
        outside = self._sums[:, -1:] - (self._sums[:, places + allocation.tiles] - self._sums[:, places])
        cost = self._mean(np.maximum(here + outside, 0.0))
        if self.others[-1].max() + allocation.by_size[-1].max() > self.limit:
            bytes_used = np.lib.stride_tricks.sliding_window_view(self.others[-1], allocation.tiles)[places] + allocation.load[-1]
            cost = np.where(bytes_used.max(axis=1) <= self.limit, cost, np.inf)
        return cost

    def least(self, allocations: Sequence[_LoadedAllocation]) -> Floats:
        """Return a lower bound on each allocation's cost.

        The bound assumes, in every part, the tiles with the least load of other populations, and the smaller number of neurons on each.
        """
        ordered, number = self._ordered
        added = np.stack([allocation.by_size[:-1, 0] for allocation in allocations], axis=1)
        tiles = np.array([allocation.tiles for allocation in allocations])
        filled = np.clip(tiles - (np.cumsum(number, axis=1) - number)[:, :, None], 0, number[:, :, None])
        before = ordered[:, :, None]
        unused, used = (_power(load / self.scale, self.power) for load in (before, before + added[:, None]))
        return ROUNDING_MARGIN * self._mean((filled * used + (number[:, :, None] - filled) * unused).sum(axis=1))

    @cached_property
    def _ordered(self) -> tuple[Floats, Ints]:
        """For each part, the ascending loads of the other populations on runs of equally loaded tiles, and the lengths of these runs."""
        changes = (self.others[:-1, 1:] != self.others[:-1, :-1]).any(axis=0)
        first = np.flatnonzero(np.append(True, changes))
        values, number = self.others[:-1, first], np.diff(np.append(first, self.others.shape[1]))
        order = np.argsort(values, axis=1)
        return np.take_along_axis(values, order, axis=1), number[order]

    def _with(self, allocation: _LoadedAllocation, more: int) -> Floats:
        """Return the power of every tile's load with the smaller (`more` 0) or larger (1) number of neurons: [parts, tiles]."""
        return _power((self.others[:-1] + allocation.by_size[:-1, more : more + 1]) / self.scale, self.power)

    def _mean(self, sums: Floats) -> Floats:
        """Return the cost, given sums of powers over all tiles, [parts, ...]."""
        cost: Floats = ((sums / self.others.shape[1]) ** (0.5**self.power)).sum(axis=0)
        return cost


def _between(values: Floats, first: Ints, number: int) -> Floats:
    sums = _sums(values)
    return sums[:, first + number] - sums[:, first]


def _sums(values: Floats) -> Floats:
    """Return the sums of the first 0, 1, … values of each row."""
    sums: Floats = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=sums[:, 1:])
    return sums


def _power(values: Floats, power: int) -> Floats:
    for _ in range(power):
        values = values * values
    return values
