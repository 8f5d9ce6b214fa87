"""The test for further windows: relays report how many they need, and the maximum holds for the machine.

Every relay of a bus whose windows may be too small says how many further windows its samples need. One tile that read all of them would
take a fragment from each; so tiles of every chip first find the most of what some relays of that chip say, level by level as long as that
is faster, and tile 0 reads what is left. A *number* is one word, or two where the backward pass needs other windows than the forward
pass, which finds both: then nobody has to ask in the backward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.placement.grouping import Floats, Ints, ceil_div
from snnc.compiler.tiles.vertices.cost import CodeletCost, worker_cycles

Direction: TypeAlias = Literal["forward", "backward"]
WORD: Final = 4
ROOT: Final = 0
"""The tile that decides."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers that wait on tiles, in the order in which they are read.

    Attributes
    ----------
    tile
        Where each piece lies; tiles ascend.
    numbers
        How many numbers a piece holds.
    """

    tile: Ints
    numbers: Ints

    @property
    def end(self) -> Ints:
        """Numbers up to the end of each piece."""
        found: Ints = np.cumsum(self.numbers)
        return found


@dataclass(frozen=True, eq=False)
class Level:
    """Tiles that read some pieces each and say the most of them.

    Attributes
    ----------
    tile
        Of each of its vertices; ascending, no tile twice.
    first, last
        The pieces ``[first, last)`` that it reads.
    """

    tile: Ints
    first: Ints
    last: Ints

    @property
    def given(self) -> Numbers:
        """What it says: one number each."""
        return Numbers(self.tile, np.ones(len(self.tile), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class WindowTest:
    """Who asks whom.

    Attributes
    ----------
    direction
        The pass in which relays say what they need.
    words
        Of a number: 2 where the forward pass finds those of the backward pass too.
    order
        Of what the relays say, as the program lists it, the pieces in the order in which they are read.
    told
        Those pieces.
    levels
        Between them and the tile that decides; none where it reads them itself.
    """

    direction: Direction
    words: int
    order: Ints
    told: Numbers
    levels: tuple[Level, ...]

    @property
    def last(self) -> Numbers:
        """What the tile that decides reads."""
        return self.levels[-1].given if self.levels else self.told

    @property
    def below(self) -> tuple[Numbers, ...]:
        """What each level reads."""
        return (self.told, *(level.given for level in self.levels))[: len(self.levels)]


def window_test(
    direction: Direction, words: int, tiles: Sequence[int], numbers: Sequence[int], target: Target, cost: CodeletCost
) -> WindowTest:
    """Return the fastest way to bring the numbers of relays on `tiles` together; `cost` is that of the vertices of a level."""
    where = np.asarray(tiles, dtype=np.int64)
    order: Ints = np.argsort(where, kind="stable")
    told = Numbers(where[order], np.asarray(numbers, dtype=np.int64)[order])
    levels: list[Level] = []
    now = told
    while True:
        most = _groups(now, words, target, cost)
        if most == 0:
            return WindowTest(direction, words, order, told, tuple(levels))
        levels.append(_level(now, _weights(now, words, target, cost), most, target.tiles_per_chip))
        now = levels[-1].given


def _groups(now: Numbers, words: int, target: Target, cost: CodeletCost) -> int:
    """Groups on the busiest chip for which a level pays most; 0 where none does."""
    weight = _weights(now, words, target, cost)
    chip = now.tile // target.tiles_per_chip
    of_chip, pieces = np.bincount(chip, weights=weight), np.bincount(chip)
    busiest = int(of_chip.argmax())
    groups = np.arange(1, ceil_div(pieces[busiest], 2) + 1)
    left = np.minimum(np.ceil(groups[:, None] * of_chip / of_chip[busiest]), pieces).sum(axis=1)
    fixed = target.sync_cycles + target.superstep_cycles + target.workers * (target.vertex_start_cycles + worker_cycles(cost))
    piece = target.fragment_cycles + words * WORD / target.exchange_bytes_per_cycle
    with_level = fixed + np.maximum(of_chip[busiest] / groups, weight.max()) + left * (piece + cost.element * words)
    all_words = words * int(now.numbers.sum())
    without = target.fragment_cycles * len(now.tile) + all_words * (WORD / target.exchange_bytes_per_cycle + cost.element)
    best = int(with_level.argmin())
    return int(groups[best]) if with_level[best] < without else 0


def _weights(now: Numbers, words: int, target: Target, cost: CodeletCost) -> Floats:
    """Cycles that each piece takes one worker of a tile that reads it: exchange, and the comparison of its numbers."""
    each = words * now.numbers * (WORD / target.exchange_bytes_per_cycle + target.workers * cost.element)
    found: Floats = (target.fragment_cycles + each).astype(np.float64)
    return found


def _level(now: Numbers, weight: Floats, most: int, tiles_per_chip: int) -> Level:
    """Cut the pieces of each chip into groups of about one weight, the pieces of a tile together; `most` on the busiest chip."""
    chip = now.tile // tiles_per_chip
    of_chip = np.bincount(chip, weights=weight)
    groups = np.ceil(most * of_chip / of_chip.max())
    before = np.cumsum(weight) - weight
    before_chip = np.cumsum(of_chip) - of_chip
    middle = before + weight / 2
    first_of_tile = np.searchsorted(now.tile, now.tile, side="left")
    group = np.floor((middle[first_of_tile] - before_chip[chip]) * groups[chip] / of_chip[chip]).astype(np.int64)
    begins = np.flatnonzero(np.diff(chip * (most + 1) + group, prepend=-1))
    return Level(now.tile[begins], begins, np.append(begins[1:], len(now.tile)))


@dataclass(frozen=True, eq=False)
class Asked:
    """What one level costs: tiles that ask, what each receives, and who sends how much."""

    tile: Ints
    numbers: Ints
    received: Floats
    fragments: Floats
    from_tile: Ints
    sent: Floats


def asked(test: WindowTest) -> tuple[Asked, ...]:
    """Return what each level, and at last the tile that decides, reads: bytes and fragments from other tiles."""
    root = Level(np.array([ROOT]), np.array([0]), np.array([len(test.last.tile)]))
    return tuple(_asked(test.words, below, level) for below, level in zip((*test.below, test.last), (*test.levels, root), strict=True))


def _asked(words: int, below: Numbers, level: Level) -> Asked:
    reader = np.repeat(level.tile, level.last - level.first)
    size = words * WORD * below.numbers * (reader != below.tile)
    return Asked(
        level.tile,
        np.add.reduceat(below.numbers, level.first),
        np.add.reduceat(size, level.first).astype(np.float64),
        np.add.reduceat((size > 0).astype(np.int64), level.first).astype(np.float64),
        below.tile,
        size.astype(np.float64),
    )
