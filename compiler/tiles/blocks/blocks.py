"""All blocks of a population, as arrays, and the sizes of the blocks on a tile.

A block is the neurons and samples that one worker processes. The neurons and the samples of a tile are split as evenly as possible, so its
blocks have at most two numbers of neurons and two of samples. Blocks of one *kind* have the same cost, so costs are computed once for each
kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Cut, Ints, column_groups, places_within, sample_groups, sample_step
from snnc.compiler.tiles.blocks.tile_range import TileRange

MAX_CODES: Final = 1 << 62
"""Maximum number of codes in :func:`different_rows`: the code of a row is a 64-bit integer."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """All blocks of a population, and the properties of each kind of block."""

    place: Ints
    kind: Ints
    """For each block: the index of its tile among the tiles of the population, and its kind."""
    columns: Ints
    """Number of neurons of a block. This array and all arrays below have one element per kind."""
    first: Ints
    samples: Ints
    """Samples ``[first, first + samples)`` of a block."""
    of_tile: Ints
    """Number of samples on the tile of a block."""
    group: Ints
    """Column group of a block, numbered over a replica; 0 if column groups of the same size cost the same."""
    odd: Ints
    """1 if the index of a block's first sample on its tile is odd."""


def blocks_of(where: TileRange, workers: int, *, distinct_groups: bool, pairs: bool = False) -> Blocks:
    """Cut a population into blocks; :func:`~snnc.compiler.tiles.blocks.grouping.split_samples` describes the cut of the samples.

    With `distinct_groups`, blocks of different column groups differ in kind. With `pairs` (float16 deltas), all have at least two samples.
    """
    parts = list(_by_replicas(where, workers, distinct_groups=distinct_groups, pairs=pairs))
    place = np.concatenate([place for place, _ in parts])
    numbers = np.concatenate([kind for _, kind in parts])
    one, kind = different_rows(numbers)
    return Blocks(place, kind, *numbers[one].T.copy())


def different_rows(numbers: Ints) -> tuple[Ints, Ints]:
    """Number the distinct rows of numbers >= 0 in ascending order; return the index of one instance of each, and the number of every row.

    This is faster than ``np.unique(axis=0)``, because it sorts one integer code per row.
    """
    code, codes = np.zeros(len(numbers), dtype=np.int64), 1
    for column, most in zip(numbers.T, numbers.max(axis=0, initial=0).tolist(), strict=True):
        if codes * (most + 1) > MAX_CODES:
            _, ranks = np.unique(code, return_inverse=True)
            code, codes = ranks.reshape(-1), len(numbers)
        code, codes = code * (most + 1) + column, codes * (most + 1)
    _, one, kind = np.unique(code, return_index=True, return_inverse=True)
    return one, kind.reshape(-1)


def cut_key(where: TileRange) -> tuple[object, ...]:
    """Return a key that is equal for ranges that are cut into equal blocks."""
    return where.neurons.tobytes(), where.columns, where.samples, where.paired


def _by_replicas(where: TileRange, workers: int, *, distinct_groups: bool, pairs: bool = False) -> Iterator[tuple[Ints, Ints]]:
    """Yield the places and the six properties (`columns` to `odd` of :class:`Blocks`) of all blocks, grouped by samples per replica."""
    begin = np.array([first for first, _ in where.samples], dtype=np.int64)
    size = np.array([count for _, count in where.samples], dtype=np.int64)
    for samples in np.unique(size).tolist():
        here = np.flatnonzero(size == samples)
        place, properties = _of_replica(where, workers, samples, distinct_groups=distinct_groups, pairs=pairs)
        of_replicas = np.repeat(properties[None], len(here), axis=0)
        of_replicas[:, :, 1] += begin[here, None]
        yield (here[:, None] * where.width + place).ravel(), of_replicas.reshape(-1, 6)


def _of_replica(where: TileRange, workers: int, samples: int, *, distinct_groups: bool, pairs: bool = False) -> tuple[Ints, Ints]:
    groups = column_groups(where.neurons, where.columns)
    shares = np.where(groups > 0, sample_groups(where.neurons, where.columns, workers, samples, pairs=pairs), 0)
    number = groups * shares
    tile = np.repeat(np.arange(where.width), number)
    within = places_within(number)
    group, share = within // shares[tile], within % shares[tile]
    columns = where.neurons[tile] // groups[tile] + (group < where.neurons[tile] % groups[tile])
    step = sample_step(samples, np.maximum(shares, 1), paired=where.paired)[tile]
    size, larger = (samples // step) // shares[tile], (samples // step) % shares[tile]
    first, count = step * (share * size + np.minimum(share, larger)), step * (size + (share < larger))
    index = (np.cumsum(groups) - groups)[tile] + group if distinct_groups else np.zeros_like(tile)
    return tile, np.stack([columns, first, count, np.full_like(tile, samples), index, first % 2], axis=1)


@dataclass(frozen=True, eq=False)
class BlockShape:
    """Blocks of `columns` neurons and `samples` samples, `number` of them on each tile; each field is a number or an array over tiles.

    `odd` is 1 if the index of a block's first sample on its tile is odd.
    """

    columns: Any
    samples: Any
    number: Any
    odd: Any = 0


def shapes(cut: Cut, neurons: Ints, samples: Ints, workers: int, *, pairs: bool = False) -> Iterator[BlockShape]:
    """Yield the sizes of the blocks on tiles with `neurons` neurons and `samples` samples; sizes that do not occur are left out."""
    groups = np.maximum(column_groups(neurons, cut.columns), 1)
    shares = np.maximum(sample_groups(neurons, cut.columns, workers, samples, pairs=pairs), 1)
    step = sample_step(samples, shares, paired=cut.paired)
    for columns, groups_of_size in _parts(neurons, groups):
        for count, shares_of_size in _parts(samples // step, shares):
            shape = BlockShape(columns, step * count, groups_of_size * shares_of_size)
            if (shape.number > 0).any():
                yield shape


def _parts(total: Ints, parts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the size and the number of the larger parts of `total`, then those of the smaller parts."""
    size, larger = total // parts, total % parts
    yield size + 1, larger
    yield size, np.where(size > 0, parts - larger, 0)
