"""A graph as the step program that a target runs."""

from __future__ import annotations

from typing import Any

from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.lower import lower
from snnc.compiler.passes.fill_sparse import FillSparse
from snnc.options.compile_options import Options
from snnc.options.targets import UNPLACED

FILLED = 0.5
"""Part of its places with an entry from which on a sparse weight is no smaller than a dense one: each takes 8 bytes."""


def lowered(graph: Graph, chosen: Options) -> StepProgram:
    """Write `graph` as a step program in a form that the target runs."""
    return lower(filled(graph, chosen), **lowering_options(chosen), loss_output=chosen.loss_output, truncate=chosen.truncate)


def filled(graph: Graph, chosen: Options) -> Graph:
    """Return `graph` with the weights that tiles hold best as dense ones filled up."""
    return graph if chosen.target in UNPLACED else FillSparse(trains=chosen.loss is not None, least=FILLED)(graph)


def lowering_options(chosen: Options) -> dict[str, Any]:
    """Return what :func:`~snnc.compiler.lowering.lower.lower` takes by name of what was asked for."""
    return {
        "loss": chosen.loss,
        "optimizer": chosen.optimizer,
        "surrogate": chosen.surrogate,
        "gradient_window": chosen.gradient_window,
        "steps": chosen.steps,
    }
