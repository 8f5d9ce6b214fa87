"""A graph as the step program that a target runs."""

from __future__ import annotations

from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.lower import lower
from snnc.options.compile_options import Options


def lowered(graph: Graph, chosen: Options) -> StepProgram:
    """Write `graph`, prepared for the target, as a step program."""
    return lower(
        graph,
        loss=chosen.loss,
        optimizer=chosen.optimizer,
        surrogate=chosen.surrogate,
        gradient_window=chosen.gradient_window,
        steps=chosen.steps,
        loss_output=chosen.loss_output,
        truncate=chosen.truncate,
    )
