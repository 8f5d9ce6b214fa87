"""Memory over a step compared with the limit: the live data on the plan's fullest tile, superstep by superstep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snnc.compiler.ir.plan import Plan


@dataclass(frozen=True)
class Moment:
    """Predicted bytes that are live in a superstep, by category, on the plan's fullest tile; `all_tiles` on all together.

    `emulated` is what the tile holds that is the fullest in this superstep on the emulator; None without a run.
    """

    phase: str
    tile: int
    bytes: Mapping[str, int]
    all_tiles: int
    emulated: int | None = None
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(self.bytes.values()))


def fullest_tile(plan: Plan) -> int:
    """Return the tile that holds most, all categories together."""
    return plan.fullest_tile


def over_time(plan: Plan, emulated: Mapping[str, int] | None = None) -> tuple[Moment, ...]:
    """Return what is live in each superstep; of a plan without that record, the one moment at which tiles hold most.

    Parameters
    ----------
    plan
        The plan.
    emulated
        Superstep -> bytes of the tile that the emulator then finds to be the fullest.
    """
    tile, known = plan.fullest_tile, emulated or {}
    if not plan.memory_over_time:
        return (Moment("peak", tile, {name: tiles[tile] for name, tiles in plan.memory.items()}, sum(plan.tile_memory)),)
    return tuple(Moment(m.name, tile, m.tile, sum(m.all_tiles.values()), known.get(m.name)) for m in plan.memory_over_time)
