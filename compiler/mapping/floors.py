"""Populations on two floors: every tile holds a part of a population of each.

A superstep waits for its busiest tile, and on tiles of their own populations are busy in different ones: where a convolution's source
gradient is formed (a pooling's tiles, say) there is little to do forward, where currents are summed there is little to do in between. So
populations are ordered by the part of their work that source gradients take, and this order is cut in two wherever that may be best: each
side shares out all tiles as :mod:`snnc.compiler.mapping.placement` does, with half of every tile's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from snnc.compiler.mapping.block_cycles import PARTS
from snnc.compiler.mapping.choices import TYPICAL_NEURONS, Choice, all_within
from snnc.compiler.mapping.grouping import Floats
from snnc.compiler.mapping.placement import SHARES, Placement, ShareTiles, copied, each_once, place_apart
from snnc.compiler.mapping.problem import Problem

BEST: Final = 3
"""Placements that are worth a price."""
LEVELS: Final = 2


def on_two_floors(problem: Problem, options: Sequence[Sequence[Choice]], chips: int, copies: int = 1) -> list[Placement]:
    """Return the most promising placements on two floors; parameters as :func:`snnc.compiler.mapping.placement.placements` takes them."""
    layers = len(problem.network.layers)
    if problem.target.tiles < layers or not problem.training:
        return []
    halves = each_once(options, lambda some: all_within(some[0].limit / LEVELS, some))
    order = np.argsort([_back(some) for some in halves], kind="stable")
    found: list[tuple[float, Placement]] = []
    for cut in range(1, layers):
        floors = np.zeros(layers, dtype=np.int64)
        floors[order[cut:]] = 1
        found += [each for share in SHARES if (each := _placed(problem, halves, chips // copies, tuple(floors.tolist()), share)) is not None]
    found.sort(key=lambda each: each[0])
    return [copied(problem, placement, chips // copies, copies) for _, placement in found[:BEST]]


def _back(some: Sequence[Choice]) -> float:
    """The part of a population's work that source gradients take."""
    parts = some[0].parts[:, min(some[0].neurons, TYPICAL_NEURONS) - 1]
    return float(parts[PARTS.index("source_gradient")] / max(parts.sum(), 1.0))


def _placed(
    problem: Problem, options: Sequence[Sequence[Choice]], chips: int, floors: tuple[int, ...], share: ShareTiles
) -> tuple[float, Placement] | None:
    """Place both floors; also the cycles of a step with the slowest tiles of both on top of each other."""
    ranges, used, cycles = [None] * len(floors), 1, 0.0
    for floor in range(LEVELS):
        members = [index for index, mine in enumerate(floors) if mine == floor]
        placed = place_apart(problem, [options[m] for m in members], chips, 0, share)
        if placed is None:
            return None
        used = max(used, placed.chips)
        for member, where in zip(members, placed.ranges, strict=True):
            ranges[member] = where
        cycles += float(np.max([_parts(options[m], ranges[m]) for m in members], axis=0).sum())
    return cycles, Placement(tuple(ranges), used, 1, floors)


def _parts(some: Sequence[Choice], where) -> Floats:
    choice = next(c for c in some if (c.cut.replicas, c.cut.columns) == (where.replicas, where.columns))
    return choice.parts[:, int(where.neurons.max()) - 1]
