"""What tiles compute in a superstep: vertices, dealt to the workers of their tile, in the iterations in which they have a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.mapping.grouping import Floats, Ints
from snnc.compiler.mapping.problem import Problem

Bools: TypeAlias = npt.NDArray[np.bool_]
Work: TypeAlias = tuple[int, Any]
"""(first iteration, cycles): cycles beside the idle ones, in that iteration and in every `interval`-th one, `steps` times."""


SUPERVISOR: Final = 11.0
"""Tile cycles in which the supervisor starts all workers on one vertex (docs/reference/emulator.md)."""
SEEN: Final = 0.98
"""Part of all iterations that is looked at; what vertices do in the rest, the ends of a long sequence, is taken to be the same."""


@dataclass(frozen=True, eq=False)
class _Vertices:
    """All vertices, ordered as they were added: tile, idle cycles, cycles by first iteration, what the largest draw adds."""

    tiles: Ints
    idle: Floats
    work: Mapping[int, Floats]
    extra: Floats
    shared: Floats
    """Of a vertex that all workers of its tile share: worker cycles of all over those of the slowest; 0 of one that a worker runs."""
    crowded: Bools
    """Of each vertex that a worker runs: whether its tile has more of them than workers."""

    def cycles(self, active: frozenset[int]) -> Floats:
        """Cycles of every vertex in an iteration with work of the first iterations `active`."""
        found: Floats = self.idle + sum((self.work[first] for first in active), np.zeros(1))
        return found


def expected_maximum(draws: int) -> float:
    """Standard deviations by which the largest of independent normal numbers exceeds their mean (Blom 1958: alpha = 3/8)."""
    return NormalDist().inv_cdf((draws - 0.375) / (draws + 0.25))


class Load:
    """Vertices of one compute set. What is added are worker cycles; what :attr:`cycles` and :attr:`busiest` tell are tile cycles."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._added: list[tuple[Ints, Floats, Floats, Floats]] = []
        self._work: list[tuple[int, int, Floats]] = []
        self._number = 0

    def add(
        self,
        tiles: Ints | int,
        cycles: Any,
        number: Any = 1,
        *,
        work: Sequence[Work] = (),
        spread: Any = 0.0,
        draws: int = 1,
        shared: Any = 0.0,
    ) -> None:
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
        shared
            Where all workers of a tile share a vertex: the cycles of all of them together, over those of the slowest. Such vertices run
            one after the other, before those that one worker runs.
        """
        where = np.atleast_1d(np.asarray(tiles, dtype=np.int64))
        times = number if np.ndim(number) else int(number)

        def each(values: Any) -> Floats:
            whole = values if np.ndim(values) else np.full(len(where), float(values))
            found: Floats = np.repeat(whole, times) if np.ndim(times) or times != 1 else np.asarray(whole, dtype=np.float64)
            return found

        here = np.repeat(where, times)
        self._added.append((here, each(cycles), each(np.asarray(spread) * expected_maximum(draws)), each(shared)))
        self._work += [(first, self._number, each(amount)) for first, amount in work]
        self._number += len(here)

    def add_all(self, tiles: Ints, cycles: Floats) -> None:
        """Add one vertex for each element of two arrays; tiles may occur again."""
        none = np.zeros(len(tiles))
        self._added.append((tiles, cycles, none, none))
        self._number += len(tiles)

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return self._number

    @cached_property
    def _vertices(self) -> _Vertices:
        if not self._added:
            return _Vertices(np.zeros(0, dtype=np.int64), np.zeros(0), {}, np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
        tiles, idle, extra, shared = (np.concatenate(parts) for parts in zip(*self._added, strict=True))
        work: dict[int, Floats] = {}
        for first, start, amount in self._work:
            whole = work.setdefault(first, np.zeros(len(tiles)))
            whole[start : start + len(amount)] += amount
        counts = np.bincount(tiles, weights=shared == 0, minlength=self.problem.target.tiles)
        return _Vertices(tiles, idle, work, extra, shared, (counts[tiles] > self.problem.target.workers) & (shared == 0))

    @cached_property
    def _sets(self) -> list[tuple[float, frozenset[int]]]:
        """The sets of first iterations that are at work at once, the frequent ones first, and in which part of all iterations."""
        schedule, steps = self.problem.schedule, self.problem.steps
        return _sets_of(tuple(sorted(self._vertices.work)), schedule.interval, steps, schedule.iterations(steps))

    @cached_property
    def total(self) -> Floats:
        """Worker cycles of all vertices of each tile, in the mean over iterations."""
        v, steps = self._vertices, self.problem.steps
        mean = v.idle + sum(v.work.values(), np.zeros(1)) * steps / self.problem.schedule.iterations(steps)
        mean = np.where(v.shared > 0, v.shared * mean + SUPERVISOR, mean)
        found: Floats = np.bincount(v.tiles, weights=mean, minlength=self.problem.target.tiles).astype(np.float64)
        return found

    @cached_property
    def cycles(self) -> Floats:
        """Tile cycles of each tile, in the mean over iterations."""
        found: Floats = sum((share * mean for share, mean, _ in self._makespans), np.zeros(self.problem.target.tiles))
        return found

    @property
    def busiest(self) -> float:
        """Expected tile cycles of the tile that takes longest, in the mean over iterations."""
        return sum(share * float(largest.max(initial=0.0)) for share, _, largest in self._makespans)

    @property
    def busiest_tile(self) -> int:
        """The tile that takes longest in most iterations."""
        return int(self._makespans[0][1].argmax())

    @cached_property
    def _makespans(self) -> list[tuple[float, Floats, Floats]]:
        """Of each set: its part of all iterations, and tile cycles of every tile, expected and of the largest of all draws."""
        v, workers, tiles = self._vertices, self.problem.target.workers, self.problem.target.tiles
        # Where workers take several vertices, their draws add up as their squares do.
        squares = np.sqrt(np.bincount(v.tiles[v.crowded], weights=v.extra[v.crowded] ** 2, minlength=tiles)) / workers
        alone, found = v.shared == 0, []
        for share, active in self._sets:
            cycles = v.cycles(active)
            mean, largest = np.zeros(tiles), np.zeros(tiles)
            extra = v.extra * (cycles > v.idle) if v.work else v.extra
            np.maximum.at(mean, v.tiles[alone], cycles[alone])
            np.maximum.at(largest, v.tiles[alone], (cycles + extra)[alone])
            if v.crowded.any():
                longest = makespans(v.tiles[v.crowded], cycles[v.crowded], tiles, workers)
                mean = np.maximum(mean, longest)
                largest = np.maximum(largest, np.where(longest > 0, longest + squares, 0.0))
            if not alone.all():
                each = np.where(alone, 0.0, cycles + SUPERVISOR / workers)
                serial = np.bincount(v.tiles, weights=each, minlength=tiles)
                mean += serial
                largest += serial + np.sqrt(np.bincount(v.tiles, weights=np.where(alone, 0.0, extra) ** 2, minlength=tiles))
            found.append((share, workers * mean, workers * largest))
        return found


@lru_cache(maxsize=256)
def _sets_of(firsts: tuple[int, ...], interval: int, steps: int, iterations: int) -> list[tuple[float, frozenset[int]]]:
    if not firsts:
        return [(1.0, frozenset())]
    last = interval * (steps - 1)
    counted: Counter[frozenset[int]] = Counter()
    for k in range(iterations):
        counted[frozenset(f for f in firsts if 0 <= k - f <= last and (k - f) % interval == 0)] += 1
    found, seen = [], 0
    for active, number in counted.most_common():
        if seen >= SEEN * iterations:
            break
        found.append((number, active))
        seen += number
    return [(number / seen, active) for number, active in found]


def makespans(where: Ints, cycles: Floats, tiles: int, workers: int) -> Floats:
    """Worker cycles until the last worker of each tile is done: each takes the longest vertex that is left (Graham's LPT rule).

    Parameters
    ----------
    where, cycles
        Tile and cycles of every vertex.
    tiles, workers
        Tiles of the machine, workers of each.
    """
    order = np.lexsort((-cycles, where))
    where, cycles = where[order], cycles[order]
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
