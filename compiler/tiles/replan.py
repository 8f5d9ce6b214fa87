"""The placement of a plan, to predict its cycles with another activity (spike rates) or with other exchange costs."""

from __future__ import annotations

import numpy as np

from snnc.compiler.ir.plan import Plan, PopulationPlan
from snnc.compiler.tiles.blocks.grouping import split_samples
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.request_search import Placer


def as_planned(plan: Plan) -> Placer:
    """Return a `placer` for `make_plan` that places every population as in `plan`, a plan on one chip.

    Relays and losses are distributed again, which gives the same result if the costs are the same.
    Plans on several chips are rejected (ValueError), because a plan does not record whether groups of chips share the batch.
    """
    if plan.chips_used != 1:
        raise ValueError(f"the plan uses {plan.chips_used} chips; only a plan on one chip can be priced again.")
    tiles = [tile for population in plan.populations for tile in population.all_tiles]
    ranges = tuple(_range_of(population) for population in plan.populations)
    return lambda _: [Placement(ranges, 1, shared=len(tiles) > len(set(tiles)))]


def _range_of(population: PopulationPlan) -> TileRange:
    cuts: dict[int, set[tuple[int, int]]] = {tile: set() for tile in population.replica_tiles(0)}
    shares: dict[tuple[int, int], list[int]] = {}
    first = [np.iinfo(np.int64).max] * population.replicas
    last = [0] * population.replicas
    replica = {tile: r for r in range(population.replicas) for tile in population.replica_tiles(r)}
    for block in population.blocks:
        r = replica[block.tile]
        first[r], last[r] = min(first[r], block.sample), max(last[r], block.sample + block.samples)
        shares.setdefault((block.tile, block.first), []).append(block.samples)
        if r == 0:
            cuts[block.tile].add((block.first, block.count))
    neurons = np.array([sum(count for _, count in groups) for groups in cuts.values()], dtype=np.int64)
    samples = tuple((int(a), int(b - a)) for a, b in zip(first, last, strict=True))
    paired = all(some == [count for _, count in split_samples(sum(some), len(some))] for some in shares.values())
    return TileRange(population.starts, neurons, samples, max(len(groups) for groups in cuts.values()), paired=paired)
