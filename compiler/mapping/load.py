"""What tiles compute in a superstep: vertices, dealt to the workers of their tile, in the iterations in which they have a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from snnc.compiler.mapping.grouping import Floats, Ints
from snnc.compiler.mapping.problem import Problem

Work: TypeAlias = tuple[int, Any]
"""(first iteration, cycles): cycles beside the idle ones, in that iteration and in every `interval`-th one, `steps` times."""


@dataclass(frozen=True, eq=False)
class _Vertices:
    """Equal vertices, one for each element of `tiles`: idle cycles, cycles by first iteration, spread, draws."""

    tiles: Ints
    idle: Floats
    work: tuple[tuple[int, Floats], ...]
    spread: Floats
    draws: int


def expected_maximum(draws: int) -> float:
    """Standard deviations by which the largest of independent normal numbers exceeds their mean (Blom 1958: alpha = 3/8)."""
    return NormalDist().inv_cdf((draws - 0.375) / (draws + 0.25))


class Load:
    """Vertices of one compute set. Cycles are worker cycles; what :attr:`cycles` tells are tile cycles."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._held: list[_Vertices] = []

    def add(self, tiles: Ints | int, cycles: Any, number: Any = 1, *, work: Sequence[Work] = (), spread: Any = 0.0, draws: int = 1) -> None:
        """Give tiles `number` vertices each.

        Parameters
        ----------
        tiles
            Tiles; one may occur several times.
        cycles
            Cycles of every run of a vertex: all, when it has no `work` of its own.
        number
            Vertices of a tile.
        work
            What it does in some iterations only.
        spread, draws
            Standard deviation of its cycles in a run, from random numbers of events, and how many vertices draw theirs independently.
        """
        where = np.atleast_1d(np.asarray(tiles, dtype=np.int64))
        times = np.broadcast_to(np.asarray(number, dtype=np.int64), where.shape)

        def each(values: Any) -> Floats:
            found: Floats = np.repeat(np.broadcast_to(np.asarray(values, dtype=np.float64), where.shape), times)
            return found

        parts = tuple((first, each(amount)) for first, amount in work)
        self._held.append(_Vertices(np.repeat(where, times), each(cycles), parts, each(spread), draws))

    @cached_property
    def _sets(self) -> list[tuple[float, frozenset[int]]]:
        """The sets of first iterations that are at work at once, and in which part of all iterations."""
        schedule, steps = self.problem.schedule, self.problem.steps
        firsts = sorted({first for v in self._held for first, _ in v.work})
        if not firsts:
            return [(1.0, frozenset())]
        last = schedule.interval * (steps - 1)
        iterations = schedule.iterations(steps)
        counted = Counter(
            frozenset(f for f in firsts if 0 <= k - f <= last and (k - f) % schedule.interval == 0) for k in range(iterations)
        )
        return [(number / iterations, active) for active, number in counted.items()]

    @cached_property
    def total(self) -> Floats:
        """Worker cycles of all vertices of each tile, in the mean over iterations."""
        found: Floats = np.zeros(self.problem.target.tiles)
        for share, active in self._sets:
            for v in self._held:
                np.add.at(found, v.tiles, share * _cycles(v, active))
        return found

    @cached_property
    def cycles(self) -> Floats:
        """Tile cycles of each tile, in the mean over iterations."""
        return sum((share * self._makespans(active)[0] for share, active in self._sets), np.zeros(self.problem.target.tiles))

    @cached_property
    def busiest(self) -> float:
        """Expected tile cycles of the tile that takes longest, in the mean over iterations."""
        return sum(share * float(self._makespans(active)[1].max(initial=0.0)) for share, active in self._sets)

    def _makespans(self, active: frozenset[int]) -> tuple[Floats, Floats]:
        """Tile cycles of every tile: expected, and of the largest of all draws."""
        workers, tiles = self.problem.target.workers, self.problem.target.tiles
        if not self._held:
            return np.zeros(tiles), np.zeros(tiles)
        where = np.concatenate([v.tiles for v in self._held])
        cycles = np.concatenate([_cycles(v, active) for v in self._held])
        extra = np.concatenate([_spread(v, active) * expected_maximum(v.draws) for v in self._held])
        order = np.lexsort((-cycles, where))
        where, cycles, extra = where[order], cycles[order], extra[order]
        mean = makespans(where, cycles, tiles, workers)
        largest = np.zeros(tiles)
        np.maximum.at(largest, where, cycles + extra)
        # Where workers take several vertices, their draws add up as their squares do.
        squares = np.sqrt(np.bincount(where, weights=extra**2, minlength=tiles))
        counts = np.bincount(where, minlength=tiles)
        return workers * mean, workers * np.where(counts <= workers, largest, np.maximum(mean + squares / workers, largest))


def _cycles(v: _Vertices, active: frozenset[int]) -> Floats:
    found: Floats = v.idle + sum((amount for first, amount in v.work if first in active), np.zeros(len(v.tiles)))
    return found


def _spread(v: _Vertices, active: frozenset[int]) -> Floats:
    runs = not v.work or any(first in active for first, _ in v.work)
    return v.spread if runs else np.zeros(len(v.tiles))


def makespans(where: Ints, cycles: Floats, tiles: int, workers: int) -> Floats:
    """Worker cycles until the last worker of each tile is done: each takes the longest vertex that is left (Graham's LPT rule).

    Parameters
    ----------
    where, cycles
        Tile and cycles of every vertex, ordered by tile and, on a tile, longest first.
    tiles, workers
        Tiles of the machine, workers of each.
    """
    counts = np.bincount(where, minlength=tiles)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    found: Floats = np.zeros(tiles)
    used = np.flatnonzero(counts)
    found[used] = cycles[starts[used]]
    crowded = np.flatnonzero(counts > workers)
    if len(crowded) == 0:
        return found
    busy = np.zeros((len(crowded), workers))
    for turn in range(int(counts[crowded].max())):
        left = np.flatnonzero(turn < counts[crowded])
        free = busy[left].argmin(axis=1)
        busy[left, free] += cycles[starts[crowded[left]] + turn]
    found[crowded] = busy.max(axis=1)
    return found
