"""Cycles of tiles in a superstep: vertices are assigned to workers, and their cycles are added for every iteration.

A vertex is an instance of a codelet on a tile. One of the tile's workers (hardware threads) runs it, or all of them share it. All tiles
wait for the slowest one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.ir.plan import PhaseLoop
from snnc.compiler.tiles.blocks.grouping import Floats, Ints
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.vertices.loops import Loop, Values
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

SUPERVISOR: Final = 11.0
"""Tile cycles that the supervisor needs to start all workers on one vertex (docs/reference/emulator.md)."""
ASSIGNED: Final = 300_000
"""Maximum number of vertices times iterations that are assigned to workers, to bound the time of a prediction; beyond it, vertices are
assigned in only some of the iterations."""
AT_ONCE: Final = 1 << 21
"""Number of elements (the cycles of a vertex in an iteration) that are copied at a time: 16 MiB."""


LoopsOfKind: TypeAlias = Callable[[int], tuple[PhaseLoop, ...]]
"""Function that returns the loops of a kind of vertices; its argument is the index of the kind in a call of :meth:`Load.add_kinds`."""


def described_loops(vertex: str, loops: tuple[Loop, ...], amounts: Values, kind: int = 0, of: str = "") -> Iterator[PhaseLoop]:
    """Yield loops in the form stored in plans; `of` is appended to their names, and `kind` is the index in amounts that are arrays."""
    of_kind = {name: np.asarray(value).reshape(-1)[kind if np.size(value) > 1 else 0] for name, value in amounts.items()}
    for loop in loops:
        trips, cycles = float(loop.trips.value(of_kind)), float(loop.cycles.value(of_kind))
        if trips * cycles > 0:
            yield PhaseLoop(vertex, loop.name + of, trips, cycles)


def _loops_of_vertex(vertex: VertexSpec, amounts: Values, place: int) -> tuple[PhaseLoop, ...]:
    return tuple(described_loops(vertex.title, vertex.loops, amounts, place))


class Work:
    """Sum of the worker cycles of each tile's vertices: a lower bound on the tile's cycles, reached if all workers are always busy.

    It has the methods of :class:`Load` that a lower bound needs.
    """

    def __init__(self, problem: MappingProblem) -> None:
        self.total: Floats = np.zeros(problem.target.tiles)
        self.start = problem.target.vertex_start_cycles

    def add(self, tiles: Ints | int, cycles: Any, number: Any = 1) -> None:
        """See :meth:`Load.add`."""
        np.add.at(self.total, tiles, cycles * number)

    def add_vertices(self, tiles: Ints | int, vertex: VertexSpec, amounts: Values, number: Any = 1) -> None:
        """See :meth:`Load.add_vertices`."""
        self.add(tiles, self.start + vertex.cycles(amounts), number)


class Load:
    """Vertices of one compute set. Methods accept worker cycles; :attr:`cycles` and :attr:`busiest` are tile cycles.

    Vertices of one *kind* take the same cycles, so their cycles are stored once. Iterations are those that the problem's timeline chooses
    (:attr:`snnc.compiler.tiles.schedule.timeline.EventTimeline.chosen`). With `iterations`, the compute set runs only in the first so many.
    """

    def __init__(self, problem: MappingProblem, iterations: int | None = None) -> None:
        self.problem = problem
        self._in_all_iterations = iterations is None
        self._chosen = problem.timeline.before(iterations)
        self._tiles: list[Ints] = []
        self._kinds: list[Ints] = []
        self._cycles: list[Floats] = []
        self._shared: list[bool] = []
        self._described: list[LoopsOfKind | None] = []
        self._kind_count = 0

    def add_vertices(self, tiles: Ints | int, vertex: VertexSpec, amounts: Values, number: Any = 1) -> Load:
        """Add to each of `tiles` `number` vertices with the same work in every iteration; `amounts` are the trip counts of their loops."""
        cycles = self.problem.target.vertex_start_cycles + vertex.cycles(amounts)
        self.add(tiles, cycles, number, partial(_loops_of_vertex, vertex, amounts))
        return self

    def add_shared(self, tiles: Ints, vertex: VertexSpec, amounts: Values) -> None:
        """Add to each of `tiles` one vertex that all its workers share; `amounts` are the trip counts of the slowest worker."""
        cycles = np.array([[self.problem.target.vertex_start_cycles + vertex.cycles(amounts)]], dtype=np.float64)
        loops = partial(_loops_of_vertex, vertex, amounts)
        self.add_kinds(tiles, np.zeros(len(tiles), dtype=np.int64), cycles, shared=True, loops=loops)

    def add(self, tiles: Ints | int, cycles: Any, number: Any = 1, loops: LoopsOfKind | None = None) -> None:
        """Add to each of `tiles` `number` vertices that take `cycles` worker cycles in every run.

        `cycles` and `number` are numbers, or arrays with one element per tile. A tile may occur several times in `tiles`. `loops` returns
        the loops of a vertex, given the index of its tile in `tiles`.
        """
        where, each = np.atleast_1d(np.asarray(tiles, dtype=np.int64)), np.asarray(cycles, dtype=np.float64)
        times = np.broadcast_to(np.asarray(number, dtype=np.int64), where.shape)
        if each.size == 1:
            chosen = np.repeat(where, times)
            self.add_kinds(chosen, np.zeros(len(chosen), dtype=np.int64), each.reshape(1, 1), loops=loops)
            return
        different, first, kind = np.unique(np.broadcast_to(each, where.shape), return_index=True, return_inverse=True)
        of_kind = None if loops is None else lambda k: loops(int(first[k]))
        self.add_kinds(np.repeat(where, times), np.repeat(kind.reshape(-1), times), different[:, None], loops=of_kind)

    def add_kinds(self, tiles: Ints, kind: Ints, cycles: Floats, *, shared: bool = False, loops: LoopsOfKind | None = None) -> None:
        """Add vertices on `tiles` by kind, with the cycles of every kind in all iterations, [kinds, iterations or 1], and its `loops`.

        All workers of a tile share each `shared` vertex; its cycles are those of the slowest worker. Shared vertices run one after another,
        before the vertices that single workers run.
        """
        self._tiles.append(tiles)
        self._described.append(loops)
        self._kinds.append(kind + self._kind_count)
        self._cycles.append(cycles)
        self._shared += [shared] * len(cycles)
        self._kind_count += len(cycles)

    def in_chosen(self, cycles: Floats) -> Floats:
        """Return the columns of `cycles`, [kinds, chosen iterations], for the iterations in which this compute set runs."""
        return cycles if self._in_all_iterations else cycles[:, self._chosen]

    @property
    def tiles(self) -> Ints:
        """Tiles with a vertex, ascending."""
        occupied = np.zeros(self.problem.target.tiles, dtype=bool)
        for tiles in self._tiles:
            occupied[tiles] = True
        return np.flatnonzero(occupied)

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return sum(map(len, self._tiles))

    @cached_property
    def _all(self) -> tuple[Ints, Ints, Floats]:
        """Tile and kind of every vertex, and the cycles of all kinds, [kinds, iterations]."""
        if not self._tiles:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 1))
        return np.concatenate(self._tiles), np.concatenate(self._kinds), self._rows(np.arange(self._kind_count))

    def _rows(self, kinds: Ints) -> Floats:
        """Return the cycles of `kinds`, which are in ascending order: [kinds, iterations]."""
        rows: Floats = np.zeros((len(kinds), max((part.shape[1] for part in self._cycles), default=1)))
        edges = np.cumsum([0, *(len(part) for part in self._cycles)])
        places = np.searchsorted(kinds, edges)
        for part, first, begin, stop in zip(self._cycles, edges.tolist(), places.tolist(), places[1:].tolist(), strict=False):
            rows[begin:stop] = part[kinds[begin:stop] - first]
        return rows

    @cached_property
    def total(self) -> Floats:
        """Worker cycles of all vertices of each tile, averaged over iterations; a shared vertex takes those of all workers."""
        tiles, kind, cycles = self._all
        mean, workers = cycles.mean(axis=1), self.problem.target.workers
        each = np.where(np.array(self._shared, dtype=bool), workers * mean + SUPERVISOR, mean)
        return np.bincount(tiles, weights=each[kind], minlength=self.problem.target.tiles).astype(np.float64)

    @cached_property
    def cycles(self) -> Floats:
        """Tile cycles of each tile, averaged over iterations."""
        mean: Floats = np.zeros(self.problem.target.tiles)
        mean[self._groups.tiles] = self._groups.makespans.mean(axis=1)[self._groups.of_tile]
        return mean

    @cached_property
    def busiest(self) -> float:
        """Tile cycles of the slowest tile, averaged over iterations."""
        if "_groups" in self.__dict__:
            return float(self._groups.makespans.max(axis=0, initial=0.0).mean())
        if not self.vertices:
            return 0.0
        tiles, kind = np.concatenate(self._tiles), np.concatenate(self._kinds)
        # If every vertex of a tile has its own worker, the longest vertex sets the time: one maximum covers all such tiles.
        workers, serial = self.problem.target.workers, np.array(self._shared, dtype=bool)[kind] if any(self._shared) else None
        tiles_of_workers = tiles if serial is None else tiles[~serial]
        crowded = np.bincount(tiles_of_workers, minlength=self.problem.target.tiles) > workers
        if serial is not None:
            crowded[tiles[serial]] = True
        on_crowded = crowded[tiles]
        alone = np.zeros(self._kind_count, dtype=bool)
        alone[kind[~on_crowded]] = True
        longest: Any = 0.0
        for part, rows in zip(self._cycles, np.split(alone, np.cumsum([len(part) for part in self._cycles])[:-1]), strict=True):
            some = part if rows.all() else part[rows]
            longest = np.maximum(longest, workers * some.max(axis=0, initial=0.0))
        if on_crowded.any():
            present = np.zeros(self._kind_count, dtype=bool)
            present[kind[on_crowded]] = True
            place = np.cumsum(present) - 1
            groups = self._group_tiles(tiles[on_crowded], place[kind[on_crowded]], np.flatnonzero(present))
            longest = np.maximum(longest, groups.makespans.max(axis=0))
        return float(longest.mean())

    @property
    def busiest_tile(self) -> int:
        """The slowest tile on average."""
        return int(self.cycles.argmax())

    def slowest_loops(self) -> tuple[PhaseLoop, ...]:
        """Return the loops of the slowest vertex on the slowest tile (both on average), most cycles first; empty if no loops are known."""
        slowest, loops_of_slowest = 0.0, None
        for tiles, kinds, cycles, loops, first in zip(
            self._tiles, self._kinds, self._cycles, self._described, np.cumsum([0, *map(len, self._cycles)]).tolist(), strict=False
        ):
            kinds_on_tile = np.unique(kinds[tiles == self.busiest_tile]) - first
            mean = cycles[kinds_on_tile].mean(axis=1)
            if len(kinds_on_tile) and mean.max() > slowest:
                slowest, loops_of_slowest = float(mean.max()), None if loops is None else partial(loops, int(kinds_on_tile[mean.argmax()]))
        return tuple(sorted(loops_of_slowest(), key=lambda loop: -loop.total)) if loops_of_slowest is not None else ()

    @cached_property
    def _groups(self) -> TileGroups:
        """Tiles that have vertices, grouped by equal sets of vertices, so that each group is computed once."""
        tiles, kind, _ = self._all
        return self._group_tiles(tiles, kind, np.arange(self._kind_count))

    def _group_tiles(self, tiles: Ints, kind: Ints, used: Ints) -> TileGroups:
        """Group the tiles with the same vertices; `kind` contains indices into `used`, the kinds that occur."""
        label = _labels(1 << self._kind_count.bit_length())[used]
        cycles, shared = self._rows(used), np.array(self._shared, dtype=bool)[used]
        sums = np.bincount(tiles, weights=label[kind], minlength=self.problem.target.tiles)
        busy = np.flatnonzero(sums)
        _, one, of_tile = np.unique(sums[busy], return_index=True, return_inverse=True)
        place = np.full(self.problem.target.tiles, -1)
        place[busy[one]] = np.arange(len(one))
        group = place[tiles]
        chosen = np.flatnonzero(group >= 0)
        # NumPy sorts 16-bit numbers by radix, without comparisons.
        short: Any = group[chosen].astype(np.int16) if len(one) < 1 << 15 else group[chosen]
        chosen = chosen[np.argsort(short, kind="stable")]
        where, vertices = group[chosen], kind[chosen]
        workers = self.problem.target.workers
        if not shared.any():
            return TileGroups(busy, of_tile.reshape(-1), workers * makespans(where, vertices, cycles, len(one), workers))
        serial = shared[vertices]
        spans = workers * makespans(where[~serial], vertices[~serial], cycles, len(one), workers)
        np.add.at(spans, where[serial], workers * cycles[vertices[serial]] + SUPERVISOR)
        return TileGroups(busy, of_tile.reshape(-1), spans)


@lru_cache(maxsize=64)
def _labels(number: int) -> Floats:
    """Return a random integer for each kind.

    Tiles with equal sums over their vertices almost certainly have the same vertices. Sums are exact for up to 8,192 vertices.
    """
    labels: Floats = np.random.default_rng(0).integers(1, 1 << 40, size=number).astype(np.float64)
    labels.setflags(write=False)
    return labels


@dataclass(frozen=True, eq=False)
class TileGroups:
    """Tiles that compute, in groups with the same vertices."""

    tiles: Ints
    of_tile: Ints
    """Tiles, and the group of each."""
    makespans: Floats
    """Tile cycles of each group, [groups, iterations]."""


def makespans(where: Ints, kinds: Ints, cycles: Floats, tiles: int, workers: int) -> Floats:
    """Return the worker cycles until the last worker is done, under Graham's LPT rule (longest vertex first): [tiles, iterations].

    `where` (ascending) and `kinds` are the tile and the kind of every vertex. `cycles`, [kinds, iterations], are those of every kind.
    """
    spans: Floats = np.zeros((tiles, cycles.shape[1]))
    counts = np.bincount(where, minlength=tiles)
    begin = np.cumsum(counts) - counts
    alone = counts <= workers
    few = np.flatnonzero(alone & (counts > 0))
    if len(few):
        edges = np.cumsum(counts[few]) - counts[few]
        spans[few] = np.maximum.reduceat(cycles[kinds[alone[where]]], edges, axis=0)
    crowded = np.flatnonzero(~alone)
    most = ASSIGNED // max(int(counts[crowded].sum()), 1)
    for count in np.unique(counts[crowded]).tolist():
        alike = crowded[counts[crowded] == count]
        together = max(1, AT_ONCE // (count * cycles.shape[1]))
        for first in range(0, len(alike), together):
            chosen = alike[first : first + together]
            spans[chosen] = _longest_first(cycles, kinds[begin[chosen] + np.arange(count)[:, None]], workers, most)
    return spans


def _longest_first(cycles: Floats, kinds: Ints, workers: int, most: int) -> Floats:
    """Return the result of :func:`makespans` for tiles with equally many vertices; `kinds` has the shape [vertices, tiles].

    Vertices are assigned to workers in at most `most` iterations, but in at least one. The time of another iteration is the mean load of
    its workers, times the ratio of time to mean load in the assigned iterations, but at least that of its longest vertex.
    """
    (vertices, tiles), iterations = kinds.shape, cycles.shape[1]
    chosen = np.unique(np.linspace(0, iterations - 1, min(iterations, max(most, 1))).round().astype(np.int64))
    all_cycles = cycles[kinds]
    assigned = all_cycles if len(chosen) == iterations else all_cycles[:, :, chosen]
    ascending = np.sort(assigned.reshape(vertices, -1), axis=0)
    longest: Floats = _longest_worker(ascending, workers).reshape(tiles, len(chosen))
    if len(chosen) == iterations:
        return longest
    mean_load = all_cycles.sum(axis=0) / workers
    ratio = longest.sum(axis=1, keepdims=True) / np.maximum(mean_load[:, chosen].sum(axis=1, keepdims=True), 1.0)
    bounded: Floats = np.maximum(all_cycles.max(axis=0), mean_load * ratio)
    return bounded


def _longest_worker(cycles: Floats, workers: int) -> Floats:
    """Assign vertices, longest first, to the worker that is free first; return the cycles of the worker that is done last: [rows].

    `cycles` has the shape [vertices, rows], in ascending order, with at least as many vertices as workers.
    """
    vertices = len(cycles)
    # The cycles of the workers, kept in ascending order.
    busy: Floats = cycles[vertices - workers :].copy()
    for vertex in range(vertices - workers - 1, -1, -1):
        done = busy[0] + cycles[vertex]
        for worker in range(1, workers):
            np.minimum(done, busy[worker], out=busy[worker - 1])
            np.maximum(done, busy[worker], out=done)
        busy[-1] = done
    longest: Floats = busy[-1]
    return longest
