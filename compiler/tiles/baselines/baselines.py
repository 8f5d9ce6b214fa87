"""Names of the baselines (other ways to assign neurons to tiles, to compare snnc's plans with), and the placements that they choose."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np

from snnc.compiler.tiles.baselines import partition
from snnc.compiler.tiles.baselines.partition import Assignment, NeuronFlow, at_random, each_layer, one_after_the_other, runs_at_random
from snnc.compiler.tiles.blocks.grouping import Cut
from snnc.compiler.tiles.blocks.tile_range import ScatteredRange
from snnc.compiler.tiles.cycles.block_cycles import step_cycles
from snnc.compiler.tiles.errors import StrategyError
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import id_bytes

SNNC: Final = "snnc"
"""Name of snnc's own way to place neurons."""
BASELINES: Final = ("linear", "random", "metis", "greedy")
"""Names of the baselines; :mod:`snnc.compiler.tiles.baselines` describes them."""
SEED: Final = 0
"""Seed of random assignments and of METIS."""


def check_strategy(strategy: str) -> None:
    """Raise a StrategyError unless the strategy is "snnc" or a baseline."""
    if strategy not in (SNNC, *BASELINES):
        raise StrategyError(f"the strategy {strategy!r} is unknown; use {SNNC}, or a baseline: {', '.join(BASELINES)}.")


def assignments(problem: MappingProblem, strategy: str, tiles: int) -> Iterator[Assignment]:
    """Yield the assignments of a baseline to `tiles` tiles: one, or two if the baseline has two forms."""
    sizes = tuple(layer.neurons for layer in problem.network.layers)
    rng = np.random.default_rng(SEED)
    if strategy == "linear":
        yield each_layer(sizes, tiles)
        yield one_after_the_other(sizes, tiles)
    elif strategy == "random":
        yield at_random(sizes, tiles, rng)
        yield runs_at_random(sizes, tiles, rng)
    else:
        works, flows = _works(problem), _flows(problem)
        if strategy == "greedy":
            yield partition.greedy(partition.make_runs(sizes, works, flows, tiles), sizes, tiles, problem.target.tiles_per_chip)
            return
        for recursive in (False, True):
            yield _metis(sizes, works, flows, tiles, recursive=recursive)


@lru_cache(maxsize=16)
def _metis(sizes: tuple[int, ...], works: tuple[float, ...], flows: tuple[NeuronFlow, ...], tiles: int, *, recursive: bool) -> Assignment:
    """Return the assignment that METIS chooses; cached, because METIS takes seconds and many problems have the same graph."""
    return partition.metis(partition.make_runs(sizes, works, flows, tiles), flows, sizes, tiles, SEED, recursive=recursive)


def place(problem: MappingProblem, assignment: Assignment) -> Placement:
    """Return the placement of an assignment."""
    workers, last = problem.target.workers, max(int(share.tiles[-1]) for share in assignment)
    samples = ((0, problem.batch),)
    ranges = tuple(ScatteredRange((int(s.tiles[0]),), s.neurons, samples, workers, s.tiles) for s in assignment)
    return Placement(ranges, last // problem.target.tiles_per_chip + 1)


def _works(problem: MappingProblem) -> tuple[float, ...]:
    """Return, for each layer, the tile cycles of a step on a tile with one neuron per worker, divided by the number of these neurons."""
    workers = problem.target.workers
    cut = Cut(1, workers)
    return tuple(float(step_cycles(problem, layer, cut, np.array([workers])).sum()) / workers for layer in problem.network.layers)


def _flows(problem: MappingProblem) -> tuple[NeuronFlow, ...]:
    """Return the bytes per step between layers, per pair of neurons: ids (or values) sent forward, and deltas sent back."""
    index = {layer.id: n for n, layer in enumerate(problem.network.layers)}
    flows = []
    for link in problem.network.links:
        if link.source.external or link.source.owner == link.target:
            continue
        bus = problem.bus_into(link)
        forward = problem.events(link.source) * id_bytes(link.source) if bus.events else 4.0 * link.source.width
        backward = 4.0 * link.outputs if link.input_gradient else 0.0
        flows.append(NeuronFlow(index[link.source.owner], index[link.target], forward / link.inputs + backward / link.outputs))
    return tuple(flows)
