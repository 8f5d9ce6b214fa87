"""Memory over a step: live data on the plan's fullest tile, superstep by superstep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snnc.compiler.ir.plan import Plan


@dataclass(frozen=True)
class OccupancySample:
    """Predicted live bytes in a superstep, by category, on the plan's fullest tile; `all_tiles` is the sum over all tiles.

    `emulated` is the size on the tile that is fullest in this superstep on the emulator; None without an emulated run.
    """

    phase: str
    tile: int
    bytes: Mapping[str, int]
    all_tiles: int
    emulated: int | None = None
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(self.bytes.values()))


def over_time(plan: Plan, emulated: Mapping[str, int] | None = None) -> tuple[OccupancySample, ...]:
    """Return the live bytes of each superstep; a plan that does not record them has one sample, the peak.

    `emulated` contains the bytes of the fullest tile on the emulator, by superstep.
    """
    tile, known = plan.fullest_tile, emulated or {}
    if not plan.memory_over_time:
        return (OccupancySample("peak", tile, {name: tiles[tile] for name, tiles in plan.memory.items()}, sum(plan.tile_memory)),)
    return tuple(OccupancySample(m.name, tile, m.tile, sum(m.all_tiles.values()), known.get(m.name)) for m in plan.memory_over_time)
