"""Positions of tiles in drawings: each chip's tiles in rows, the chips side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass

from snnc.compiler.machines.target import Target


@dataclass(frozen=True)
class Grid:
    """Layout of a drawing: tiles of a chip in `rows` of `columns`, chips in rows of `chips_across`."""

    columns: int
    rows: int
    chips_across: int
    chips_down: int


def grid_of(target: Target) -> Grid:
    """Return a grid: 32 rows for the tiles of an IPU (46 x 32 for 1472 tiles); other chips are about 1.4 times as wide as high."""
    tiles = target.tiles_per_chip
    rows = 32 if tiles % 32 == 0 and tiles >= 1024 else max(1, round(math.sqrt(tiles / 1.4)))
    across = math.ceil(math.sqrt(target.chips))
    return Grid(math.ceil(tiles / rows), rows, across, math.ceil(target.chips / across))
