"""Supersteps of an update with batch normalisation, which runs forward and backward several times.

For each level of normalisations, an update runs forward once more to compute their statistics, and backward once more to compute the sums
for the gradient through them (docs/decisions/0058-batch-normalisation-on-tiles.md). The optimiser and the copies of weights run once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from snnc.compiler.tiles.gradients.update_steps import GRADIENTS
from snnc.compiler.tiles.memory.lifetimes import PRIVATE_SUMS, SHARED_SUMS
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.supersteps.superstep import SuperstepDraft


def runs_of_parts(problem: MappingProblem) -> Mapping[str, int]:
    """Return how often an update runs each part of a training step, without the optimiser."""
    passes = problem.network.passes
    again = passes * problem.repeats_forward
    return {"forward": 1 + passes + again, "loss": 1 + again, "recompute": 1 + passes, "backward": 1 + passes, "update": 1}


def in_passes(problem: MappingProblem, steps: Sequence[SuperstepDraft]) -> tuple[SuperstepDraft, ...]:
    """Return `steps`, each with its runs in an update."""
    if not problem.network.passes:
        return tuple(steps)
    times = runs_of_parts(problem)
    sums = dict.fromkeys((PRIVATE_SUMS, SHARED_SUMS, GRADIENTS), times["backward"])
    return tuple(replace(step, runs=step.runs * sums.get(step.name, times[step.part])) for step in steps)
