"""Positions of tiles in drawings, each chip's tiles in rows and the chips side by side; and the tile map as rectangles, for SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from snnc.compiler.ir.plan import Plan
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.exchange.places import FREE, RELAYED, LayerPlaces
from snnc.report.limits import holder
from snnc.report.pictures.palette import EMPTY, RELAY, layer_colour, mixed

JOINED: Final = 6000
"""Number of tiles above which equal neighbours are drawn as one rectangle."""


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


@dataclass(frozen=True)
class Cell:
    """A run of equal tiles in one row of the map: position and width in cells, colour, text."""

    x: float
    y: float
    width: int
    fill: str
    title: str


def cells(plan: Plan, places: LayerPlaces) -> tuple[list[Cell], Grid]:
    """Return the tile map: the hue of a tile shows its layer, the saturation its memory."""
    grid, memory = grid_of(plan.target), plan.tile_memory
    join = plan.target.tiles > JOINED
    drawn: list[Cell] = []
    for chip in range(plan.target.chips):
        left = (chip % grid.chips_across) * (grid.columns + 2)
        top = (chip // grid.chips_across) * (grid.rows + 3)
        base = chip * plan.target.tiles_per_chip
        looks = [_look(plan, int(places.owner[base + n]), memory[base + n]) for n in range(plan.target.tiles_per_chip)]
        for row in range(grid.rows):
            x = 0
            line = looks[row * grid.columns : (row + 1) * grid.columns]
            for key, run in groupby(enumerate(line), key=lambda item: (item[1], 0 if join else item[0])):
                width = len(list(run))
                tile = base + row * grid.columns + x
                tiles = f"tile {tile}" if width == 1 else f"tiles {tile} to {tile + width - 1}"
                text = f"{tiles}: {holder(plan, places, tile)}, {memory[tile]:,} bytes"
                drawn.append(Cell(left + x, top + row, width, key[0], text))
                x += width
    return drawn, grid


def _look(plan: Plan, owner: int, used: int) -> str:
    if owner == FREE:
        return EMPTY
    strength = 0.35 + 0.65 * round(8 * min(1.0, used / plan.target.tile_bytes)) / 8
    return mixed(RELAY if owner == RELAYED else layer_colour(owner), strength)
