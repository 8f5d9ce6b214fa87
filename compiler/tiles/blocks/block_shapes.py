"""Sizes of the blocks on a tile.

A block is the neurons and samples of one worker. Both are split as evenly as possible, so a tile has blocks of at most four sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnc.compiler.tiles.blocks.cut import Cut
from snnc.compiler.tiles.blocks.grouping import Ints, column_groups, sample_groups, sample_step


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
    for columns, wide in _parts(neurons, groups):
        for count, many in _parts(samples // step, shares):
            shape = BlockShape(columns, step * count, wide * many)
            if (shape.number > 0).any():
                yield shape


def _parts(total: Ints, parts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the size and the number of the larger parts of `total`, then those of the smaller parts."""
    size, larger = total // parts, total % parts
    yield size + 1, larger
    yield size, np.where(size > 0, parts - larger, 0)
