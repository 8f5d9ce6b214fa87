"""The test for further windows: in every iteration, it finds the largest number of further windows that any relay needs.

Every relay of a bus whose windows may be too small reports the number of further windows that its samples need. If a single tile read all
of these reports, it would receive a fragment for each. Therefore, tiles of every chip first compute the maximum over some relays of the
chip, level by level as long as that is faster. Tile 0 reads the remaining results. A relay reports one count, or one per worker if its
workers list spikes from bits.

If further windows are possible in the forward pass, the test runs there, also for the backward pass. A *count* is one word, or two words
if the two passes may need different numbers of windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, ceil_div
from snnc.compiler.tiles.vertices.control_vertices import COMPARED
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

Direction: TypeAlias = Literal["forward", "backward"]
WORD: Final = 4
ROOT: Final = 0
"""The tile that decides whether a further window follows."""


@dataclass(frozen=True, eq=False)
class ReportedPieces:
    """Counts of further windows on tiles, in the order in which they are read; a *piece* has the counts of one relay or vertex."""

    tile: Ints
    """Tile of each piece, ascending."""
    lengths: Ints
    """Number of counts in each piece."""

    @property
    def end(self) -> Ints:
        """Number of counts up to the end of each piece."""
        return np.cumsum(self.lengths)


@dataclass(frozen=True, eq=False)
class MaximumLevel:
    """One level of the tree: tiles that each read some pieces and report their maximum."""

    tile: Ints
    """Tile of each vertex of the level, ascending and distinct."""
    first: Ints
    last: Ints
    """The pieces ``[first, last)`` that each vertex reads."""

    @property
    def results(self) -> ReportedPieces:
        """The results of the level: one count per vertex."""
        return ReportedPieces(self.tile, np.ones(len(self.tile), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class WindowTest:
    """Communication of the test."""

    direction: Direction
    """The pass in which relays report their counts."""
    words: int
    order: Ints
    """Order in which the counts of the relays are read, as indices into the arguments `tiles` and `lengths` of :func:`window_test`."""
    reported: ReportedPieces
    """The counts of the relays in this order."""
    levels: tuple[MaximumLevel, ...]
    """Levels between the relays and the deciding tile."""

    @property
    def last(self) -> ReportedPieces:
        """Counts read by the deciding tile."""
        return self.levels[-1].results if self.levels else self.reported

    @property
    def below(self) -> tuple[ReportedPieces, ...]:
        """Counts read by each level."""
        return (self.reported, *(level.results for level in self.levels))[: len(self.levels)]


def window_test(
    direction: Direction, words: int, tiles: Sequence[int], lengths: Sequence[int], target: Target, vertex: VertexSpec
) -> WindowTest:
    """Return the fastest way to combine the counts of relays: relay i has ``lengths[i]`` counts on tile ``tiles[i]``.

    `vertex` computes a maximum on a tile of a level.
    """
    where = np.asarray(tiles, dtype=np.int64)
    order: Ints = np.argsort(where, kind="stable")
    reported = ReportedPieces(where[order], np.asarray(lengths, dtype=np.int64)[order])
    levels: list[MaximumLevel] = []
    now = reported
    while True:
        most = _groups(now, words, target, vertex)
        if most == 0:
            return WindowTest(direction, words, order, reported, tuple(levels))
        levels.append(_level(now, _weights(now, words, target, vertex), most, target.tiles_per_chip))
        now = levels[-1].results


def _groups(now: ReportedPieces, words: int, target: Target, vertex: VertexSpec) -> int:
    """Return the number of groups on the busiest chip with which a further level saves the most cycles; 0 if no level saves any."""
    weight, comparison = _weights(now, words, target, vertex), vertex.trip(COMPARED)
    chip = now.tile // target.tiles_per_chip
    of_chip, pieces = np.bincount(chip, weights=weight), np.bincount(chip)
    busiest = int(of_chip.argmax())
    groups = np.arange(1, ceil_div(pieces[busiest], 2) + 1)
    left = np.minimum(np.ceil(groups[:, None] * of_chip / of_chip[busiest]), pieces).sum(axis=1)
    fixed = target.sync_cycles + target.superstep_cycles + target.workers * (target.vertex_start_cycles + vertex.cost.start)
    piece = target.fragment_cycles + words * WORD / target.exchange_bytes_per_cycle
    with_level = fixed + np.maximum(of_chip[busiest] / groups, weight.max()) + left * (piece + comparison * words)
    all_words = words * int(now.lengths.sum())
    without = target.fragment_cycles * len(now.tile) + all_words * (WORD / target.exchange_bytes_per_cycle + comparison)
    best = int(with_level.argmin())
    return int(groups[best]) if with_level[best] < without else 0


def _weights(now: ReportedPieces, words: int, target: Target, vertex: VertexSpec) -> Floats:
    """Return the tile cycles of each piece on the reading tile: exchange, and the comparison of its counts by one worker."""
    each = words * now.lengths * (WORD / target.exchange_bytes_per_cycle + target.workers * vertex.trip(COMPARED))
    cycles: Floats = (target.fragment_cycles + each).astype(np.float64)
    return cycles


def _level(now: ReportedPieces, weight: Floats, most: int, tiles_per_chip: int) -> MaximumLevel:
    """Cut the pieces of each chip into groups of similar weight, `most` on the busiest chip; pieces of a tile stay together."""
    chip = now.tile // tiles_per_chip
    of_chip = np.bincount(chip, weights=weight)
    groups = np.ceil(most * of_chip / of_chip.max())
    before = np.cumsum(weight) - weight
    before_chip = np.cumsum(of_chip) - of_chip
    middle = before + weight / 2
    first_of_tile = np.searchsorted(now.tile, now.tile, side="left")
    group = np.floor((middle[first_of_tile] - before_chip[chip]) * groups[chip] / of_chip[chip]).astype(np.int64)
    begins = np.flatnonzero(np.diff(chip * (most + 1) + group, prepend=-1))
    return MaximumLevel(now.tile[begins], begins, np.append(begins[1:], len(now.tile)))


@dataclass(frozen=True, eq=False)
class LevelReads:
    """Data that one level of the tree reads."""

    tile: Ints
    lengths: Ints
    """Tile of each vertex of the level, and number of the counts that it reads."""
    received: Floats
    fragments: Floats
    """Bytes and fragments that each of these tiles receives from other tiles."""
    from_tile: Ints
    sent: Floats
    """Tile of each piece that is read, and bytes of the piece if it moves to another tile, else 0."""


def level_reads(test: WindowTest) -> tuple[LevelReads, ...]:
    """Return the reads of each level and, last, of the deciding tile: bytes and fragments from other tiles."""
    root = MaximumLevel(np.array([ROOT]), np.array([0]), np.array([len(test.last.tile)]))
    return tuple(
        _level_reads(test.words, below, level) for below, level in zip((*test.below, test.last), (*test.levels, root), strict=True)
    )


def _level_reads(words: int, below: ReportedPieces, level: MaximumLevel) -> LevelReads:
    reader = np.repeat(level.tile, level.last - level.first)
    size = words * WORD * below.lengths * (reader != below.tile)
    return LevelReads(
        level.tile,
        np.add.reduceat(below.lengths, level.first),
        np.add.reduceat(size, level.first).astype(np.float64),
        np.add.reduceat((size > 0).astype(np.int64), level.first).astype(np.float64),
        below.tile,
        size.astype(np.float64),
    )
