"""Predicted seconds of a feedback loop. The model is that of ``share_out.hpp``, which chooses how blocks share samples and neurons.

Its rates were measured on an H100 (docs/explanation/gpu-bounds.md).
"""

from __future__ import annotations

import math
from typing import Final

from snnc.backends.cuda.schedule.cores import PROCESSORS
from snnc.backends.cuda.schedule.launches import Launch

_CLOCK: Final = 1.98e9
"""Cycles per second that the model assumes."""
_WARPS: Final = 16
"""Number of warps in a block."""
_TILES: Final = (1, 8)
"""Possible sizes of a tile: the samples for which a weight is read once."""
_ACTIVITY: Final = 0.05
"""Assumed share of neurons that spike in a step."""
_ROW: Final = {1: 57.0, 8: 82.0}
"""Cycles in which a warp reads a row of a weight from L2, by tile."""
_LISTS: Final = 7000.0
"""Cycles in which a warp adds the weights of a list of spikes, for 32 neurons of a sample."""
_BLOCK_BARRIER: Final = 103
_TEAM_BARRIER: Final = 2400
"""Cycles of a barrier within a block, and over the blocks of a team; the latter takes one more cycle per block."""
_BYTES: Final = 24
_MULTIPLICATIONS: Final = 85
"""Bytes read from L2, and multiplications, per cycle and multiprocessor."""


def team_seconds(launch: Launch, batch: int, steps: int) -> float:
    """Return the seconds of a pass of a feedback loop with the fastest choice of teams and tile, if all weights are read from L2."""
    return steps * min(_cycles(launch, batch, blocks, tile) for blocks in (1, 2, 4, 8, 16, 32, 64, 128) for tile in _TILES) / _CLOCK


def _cycles(launch: Launch, batch: int, blocks: int, tile: int) -> float:
    """Return the cycles of a step if teams have `blocks` blocks: barriers, lists, and the largest time for bytes, products or rows."""
    samples = math.ceil(batch / min(PROCESSORS // blocks, batch))  # each multiprocessor runs one block
    reads = math.ceil(samples / tile)
    moved = 4 * (launch.listed * _ACTIVITY * samples + launch.weights * reads) / blocks
    items = math.ceil(math.ceil(launch.neurons / 32) * reads / (blocks * _WARPS))
    lists = items * min(tile, samples) * _LISTS if launch.listed else 0.0
    barrier = _BLOCK_BARRIER if blocks == 1 else _TEAM_BARRIER + blocks
    products = launch.weights * reads * tile / blocks
    return launch.levels * barrier + lists + max(moved / _BYTES, products / _MULTIPLICATIONS, items * launch.depth * _ROW[tile])
