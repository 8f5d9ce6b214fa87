"""Populations that share tiles: each on a run of tiles of its own, runs over one another.

A superstep waits for its busiest tile. On tiles of their own, populations are busy in different ones: where a convolution's source gradient
is formed there may be little to do forward, where currents are summed there is little to do in between. So runs may overlap, and a tile
does what it has of all populations. From a start, one population at a time gets another cut, width or place as long as this makes the
step shorter, as the tables of :mod:`snnc.compiler.mapping.choices` tell it::

    sum over parts p of the step of  ( mean over tiles of ( cycles of part p on a tile )^n )^(1/n)

first for a small n, for which all busy tiles count, then for larger ones, for which the busiest does. Starts: every population on as few
tiles as it can, and the best placement on tiles of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from snnc.compiler.mapping.choices import Choice
from snnc.compiler.mapping.grouping import Floats, Ints, ceil_div, neurons_per_tile
from snnc.compiler.mapping.placement import Placement, copied, lay_range
from snnc.compiler.mapping.problem import Problem

POWERS: Final = (2, 3, 4)
"""The exponents n are 2 to these: squares of squares are quickly taken."""
ROUNDS: Final = 3
"""Times that all populations are tried for each of them."""
MOST: Final = 40
"""Takes of a population that are tried."""
PLACES: Final = 24
"""First tiles that are tried, evenly over a chip."""
REPLICAS: Final = 1
"""Numbers of replicas, the largest ones, with which all populations are put on all tiles."""
LAYERS: Final = 24
"""With more populations than these nothing is tried: seconds of a laptop's time."""


@dataclass(frozen=True, eq=False)
class _Take:
    """A population cut in one way, `width` tiles a replica."""

    choice: Choice
    width: int

    @property
    def tiles(self) -> int:
        """Tiles of all replicas."""
        return self.choice.cut.replicas * self.width

    @cached_property
    def busiest(self) -> Floats:
        """Cycles of each part on the fullest tile."""
        found: Floats = self.choice.parts[:, int(ceil_div(self.choice.neurons, self.width)) - 1]
        return found

    @cached_property
    def load(self) -> Floats:
        """Cycles of each part, and bytes, of every tile, [parts + 1, tiles]."""
        neurons = neurons_per_tile(self.choice.neurons, self.width) - 1
        one = np.concatenate([self.choice.parts[:, neurons], self.choice.used[None, neurons]])
        return np.tile(one, self.choice.cut.replicas)


def sharing_tiles(
    problem: Problem, options: Sequence[Sequence[Choice]], apart: Iterable[Placement], chips: int, copies: int
) -> list[Placement]:
    """Return placements in which populations share tiles, none for groups of several chips.

    Parameters
    ----------
    problem, options, chips, copies
        As :func:`snnc.compiler.mapping.placement.placements` takes them.
    apart
        Placements of populations on tiles of their own. One of these begins the search.
    """
    if chips != copies or problem.target.tiles < len(options) or len(options) > LAYERS:
        return []
    tiles = problem.target.tiles_per_chip
    takes = [_takes(some, tiles) for some in options]
    if not all(takes):
        return []
    limit = min(some[0].limit for some in options)
    places = np.unique(np.linspace(0, tiles, PLACES, endpoint=False).astype(np.int64))
    found = []
    for start in _starts(options, takes, apart, copies):
        search = _Descent(takes, tiles, limit, places, start)
        search.run()
        found.append(_placement(problem, search.state, copies))
    return found + [_placement(problem, state, copies) for state in _everywhere(options, tiles)]


def _placement(problem: Problem, state: Sequence[tuple[_Take, int]], copies: int) -> Placement:
    ranges = [lay_range(problem.batch, take.choice.neurons, take.choice.cut, take.width, first) for take, first in state]
    return copied(problem, Placement(tuple(ranges), 1, 1, shared=True), 1, copies)


def _everywhere(options: Sequence[Sequence[Choice]], tiles: int) -> Iterator[list[tuple[_Take, int]]]:
    """Every population on all tiles, cut in one way: as replicas with few samples each."""
    known = dict.fromkeys(choice.cut for some in options for choice in some)
    for cut in known:
        if cut.replicas not in sorted({c.replicas for c in known})[-REPLICAS:]:
            continue
        state = []
        for some in options:
            choice = next((c for c in some if c.cut == cut), None)
            width = 0 if choice is None else min(tiles // cut.replicas, choice.neurons)
            if choice is not None and width and ceil_div(choice.neurons, width) <= choice.fit:
                state.append((_Take(choice, width), 0))
        if len(state) == len(options) and 3 * cut.replicas * max(take.width for take, _ in state) > 2 * tiles:
            yield state


def _takes(some: Sequence[Choice], tiles: int) -> list[_Take]:
    """What a population may take: no other needs as few tiles and as few cycles in all parts."""
    all_ = [
        _Take(choice, int(width))
        for choice in some
        for width in np.unique(ceil_div(choice.neurons, np.arange(1, choice.fit + 1)))
        if choice.cut.replicas * width <= tiles
    ]
    kept: list[_Take] = []
    front = np.empty((len(all_), len(all_[0].busiest) if all_ else 0))
    for take in sorted(all_, key=lambda t: (t.tiles, float(t.busiest.sum()))):
        if not (front[: len(kept)] <= take.busiest).all(axis=1).any():
            front[len(kept)] = take.busiest
            kept.append(take)
    return kept if len(kept) <= MOST else [kept[i] for i in np.linspace(0, len(kept) - 1, MOST).round().astype(int)]


def _starts(
    options: Sequence[Sequence[Choice]], takes: Sequence[Sequence[_Take]], apart: Iterable[Placement], copies: int
) -> Iterator[list[tuple[_Take, int]]]:
    """Yield states to begin with."""
    yield [(some[0], 0) for some in takes]
    best, cycles = None, np.inf
    for placement in apart:
        state = [_as_placed(some, where.replicas // copies, where.columns, where.width, where.starts[0]) for some, where in
                 zip(options, placement.ranges, strict=True)]  # fmt: skip
        longest = float(np.max([take.busiest for take, _ in state], axis=0).sum())
        if longest < cycles:
            best, cycles = state, longest
    if best is not None:
        yield best


def _as_placed(some: Sequence[Choice], replicas: int, columns: int, width: int, first: int) -> tuple[_Take, int]:
    choice = next(c for c in some if (c.cut.replicas, c.cut.columns) == (replicas, columns))
    return _Take(choice, width), first


class _Descent:
    """Take and first tile of every population, changed one by one."""

    def __init__(self, takes: Sequence[Sequence[_Take]], tiles: int, limit: float, places: Ints, start: list[tuple[_Take, int]]) -> None:
        self.takes, self.tiles, self.limit, self.places = takes, tiles, limit, places
        self.state = start
        self.total = np.zeros((len(start[0][0].load), tiles))
        for take, first in start:
            self.total[:, first : first + take.tiles] += take.load
        self.scale = max(float(self.total[:-1].max()), 1.0)

    def run(self) -> None:
        """Change one population after the other as long as that helps."""
        for power in POWERS:
            for _ in range(ROUNDS):
                before = list(self.state)
                for index in range(len(self.takes)):
                    self._improve(index, power)
                if self.state == before:
                    break

    def _improve(self, index: int, power: int) -> None:
        """Give a population the best take and place, all others staying."""
        mine, at = self.state[index]
        rest = self.total.copy()
        rest[:, at : at + mine.tiles] -= mine.load
        sums = np.concatenate([np.zeros((len(rest) - 1, 1)), np.cumsum(_power(rest[:-1] / self.scale, power), axis=1)], axis=1)
        found = self._cost(rest, sums, mine, np.array([at]), power)
        best, chosen = (float(found[0]) * 0.9999, (mine, at))
        for take in self.takes[index]:
            places = np.append(self.places[self.places <= self.tiles - take.tiles], self.tiles - take.tiles)
            costs = self._cost(rest, sums, take, places, power)
            place = int(costs.argmin())
            if costs[place] < best:
                best, chosen = float(costs[place]), (take, int(places[place]))
        self.state[index] = chosen
        rest[:, chosen[1] : chosen[1] + chosen[0].tiles] += chosen[0].load
        self.total = rest

    def _cost(self, rest: Floats, sums: Floats, take: _Take, places: Ints, power: int) -> Floats:
        """Cost with a take at each of some places; infinite where a tile cannot hold it."""
        windows = np.lib.stride_tricks.sliding_window_view(rest, take.tiles, axis=1)[:, places] + take.load[:, None]
        here = _power(windows[:-1] / self.scale, power).sum(axis=2)
        outside = sums[:, -1:] - (sums[:, places + take.tiles] - sums[:, places])
        cost = (np.maximum(here + outside, 0.0) / self.tiles) ** (0.5**power)
        found: Floats = np.where(windows[-1].max(axis=1) <= self.limit, cost.sum(axis=0), np.inf)
        return found


def _power(values: Floats, power: int) -> Floats:
    """Raise `values` to 2 to `power`."""
    for _ in range(power):
        values = values * values
    return values
