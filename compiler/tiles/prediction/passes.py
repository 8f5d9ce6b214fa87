"""Supersteps of an update with batch normalisation, which runs forward and backward several times.

For each level of normalisations, an update runs forward once more to compute their statistics, and backward once more to compute the sums
for the gradient through them (docs/decisions/0058-batch-normalisation-on-tiles.md). In some networks, another forward pass precedes each
of these backward passes (:attr:`~snnc.compiler.tiles.problem.MappingProblem.repeats_forward`). The optimiser and the copies of weights run
once. If the program is an operation in another framework, its gradient first runs forward again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout
from snnc.compiler.tiles.gradients.update_steps import GRADIENTS
from snnc.compiler.tiles.memory.lifetimes import PRIVATE_SUMS, SHARED_SUMS
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.supersteps.superstep import SuperstepDraft
from snnc.compiler.tiles.vertices.statistics_vertices import block_moments

MOMENTS: Final = "forward: moments"
"""Name of the superstep that computes the mean and variance of normalised values, after the forward passes that record these values."""


def moments_steps(layout: Layout) -> tuple[SuperstepDraft, ...]:
    """Return the superstep in which blocks compute the moments of their values, if any."""
    problem, load = layout.problem, Load(layout.problem)
    if not problem.network.computes_statistics:
        return ()
    for layer in (layer for layer in problem.network.layers if layer.computes_statistics):
        for shape in layout.shapes(layer):
            cycles = block_moments(problem.costs).cycles({"rows": problem.steps * shape.samples, "count": shape.columns})
            load.add(layout.ranges[layer.id].tiles, problem.target.vertex_start_cycles + cycles, shape.number)
    return (SuperstepDraft(MOMENTS, 1, load, ExchangeTraffic.none(problem)),)


def runs_of_parts(problem: MappingProblem) -> Mapping[str, int]:
    """Return how often an update runs each part of a training step."""
    passes, operation = problem.network.extra_passes, problem.network.operation
    repeated = passes * problem.repeats_forward
    loss = 1 if operation else 1 + repeated
    return {"forward": 1 + passes + repeated + operation, "loss": loss, "recompute": 1 + passes, "backward": 1 + passes, "update": 1}


def in_passes(problem: MappingProblem, steps: Sequence[SuperstepDraft]) -> tuple[SuperstepDraft, ...]:
    """Return `steps`, each with the number of its runs in a whole update."""
    if not (problem.network.extra_passes or problem.network.operation):
        return tuple(steps)
    times = runs_of_parts(problem)
    sums = dict.fromkeys((PRIVATE_SUMS, SHARED_SUMS, GRADIENTS), times["backward"]) | {MOMENTS: problem.network.extra_passes}
    return tuple(replace(step, runs=step.runs * sums.get(step.name, times[step.part])) for step in steps)
