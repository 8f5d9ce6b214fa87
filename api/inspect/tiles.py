"""What lies on each tile, and where a tile is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby

from snnc.compiler.plan import Plan
from snnc.compiler.target import Target
from snnc.inspect.palette import EMPTY, RELAY, layer_colour, mixed

FREE, RELAYED = -1, -2


@dataclass(frozen=True)
class Grid:
    """A chip's tiles are drawn in rows of `columns`."""

    columns: int
    rows: int
    chips_across: int


def grid_of(target: Target) -> Grid:
    """Choose a grid about 1.4 times as wide as high: 46 x 32 for 1472 tiles."""
    tiles = target.tiles_per_chip
    rows = 32 if tiles % 32 == 0 and tiles >= 1024 else max(1, round(math.sqrt(tiles / 1.4)))
    across = math.ceil(math.sqrt(target.chips))
    return Grid(math.ceil(tiles / rows), rows, across)


def owners(plan: Plan) -> list[int]:
    """Number of the population on each tile (the first where several share it), RELAYED for relays and losses only, FREE for none."""
    found = [FREE] * plan.target.tiles
    for tile in [r.tile for b in plan.buses for r in b.relays] + list(plan.loss_tiles):
        found[tile] = RELAYED
    for index, population in reversed(list(enumerate(plan.populations))):
        for tile in population.all_tiles:
            found[tile] = index
    return found


def neurons(plan: Plan) -> list[int]:
    """Neurons on each tile."""
    found = [0] * plan.target.tiles
    for population in plan.populations:
        for (tile, _), blocks in groupby(population.blocks, key=lambda b: (b.tile, b.first)):
            found[tile] += next(blocks).count
    return found


@dataclass(frozen=True)
class Cell:
    """A run of equal tiles in one row of the map: position and width in cells, colour, text."""

    x: float
    y: float
    width: int
    fill: str
    title: str


def cells(plan: Plan) -> tuple[list[Cell], Grid]:
    """Draw the tile map: colour by layer, strength by memory; equal neighbours are joined on machines of more than 6000 tiles."""
    grid, memory, who = grid_of(plan.target), plan.tile_memory, owners(plan)
    join = plan.target.tiles > 6000
    found: list[Cell] = []
    for chip in range(plan.target.chips):
        left = (chip % grid.chips_across) * (grid.columns + 2)
        top = (chip // grid.chips_across) * (grid.rows + 3)
        base = chip * plan.target.tiles_per_chip
        looks = [_look(plan, who[base + n], memory[base + n]) for n in range(plan.target.tiles_per_chip)]
        for row in range(grid.rows):
            x = 0
            line = looks[row * grid.columns : (row + 1) * grid.columns]
            for key, run in groupby(enumerate(line), key=lambda item: (item[1], 0 if join else item[0])):
                width = len(list(run))
                tile = base + row * grid.columns + x
                found.append(Cell(left + x, top + row, width, key[0], _title(plan, tile, who[tile], memory[tile], width)))
                x += width
    return found, grid


def _look(plan: Plan, owner: int, used: int) -> str:
    if owner == FREE:
        return EMPTY
    strength = 0.35 + 0.65 * round(8 * min(1.0, used / plan.target.tile_bytes)) / 8
    return mixed(RELAY if owner == RELAYED else layer_colour(owner), strength)


def _title(plan: Plan, tile: int, owner: int, used: int, width: int) -> str:
    name = "free" if owner == FREE else "relays" if owner == RELAYED else plan.populations[owner].label
    tiles = f"tile {tile}" if width == 1 else f"tiles {tile} to {tile + width - 1}"
    return f"{tiles}: {name}, {used:,} bytes"
