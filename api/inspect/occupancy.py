"""Memory over the phases of a step, against the limit: what is alive on the tile that is then the fullest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.plan import Phase, Plan

BACKWARD: Final = frozenset({"recompute", "backward", "update"})
"""Parts of a step in which gradients are alive."""


@dataclass(frozen=True)
class Moment:
    """Bytes that are alive in a phase, by category, on the tile that is the fullest then.

    `planned` is what the plan itself tells of the phase's fullest tile, None where it tells nothing.
    """

    phase: str
    tile: int
    bytes: dict[str, int]
    planned: int | None

    @property
    def total(self) -> int:
        """All categories."""
        return sum(self.bytes.values())


def fullest_tile(plan: Plan) -> int:
    """Return the tile that holds most, all categories together."""
    memory = plan.tile_memory
    return max(range(len(memory)), key=memory.__getitem__)


def over_time(plan: Plan) -> tuple[Moment, ...]:
    """Return what is alive in each phase.

    Weights, optimiser state, history, relays, records and code are alive always; gradients in the backward pass, what runs again for it,
    and the update; exchange buffers in a phase that receives something, with at most what its busiest tile receives.
    """
    held = {name: np.asarray(tiles, dtype=np.int64) for name, tiles in plan.memory.items()}
    planned = dict(getattr(plan, "memory_over_time", ()))
    found = []
    for phase in plan.phases:
        alive = {name: _alive(name, tiles, phase) for name, tiles in held.items()}
        tile = int(np.sum(list(alive.values()), axis=0).argmax())
        found.append(Moment(phase.name, tile, {name: int(tiles[tile]) for name, tiles in alive.items()}, planned.get(phase.name)))
    return tuple(found)


def _alive(category: str, tiles: np.ndarray[tuple[int], np.dtype[np.int64]], phase: Phase) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if category == "gradients" and phase.part not in BACKWARD:
        return np.zeros_like(tiles)
    if category == "exchange":
        return np.minimum(tiles, phase.bytes_in)
    return tiles
