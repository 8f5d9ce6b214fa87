"""A graph before it is cut into parts: in normal form, with its loss, and lowered again after the cut."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from snnc.compiler.ir.connections import recorded
from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import Loss
from snnc.compiler.lowering.loss_output import choose_loss_output
from snnc.compiler.lowering.lower import lower
from snnc.compiler.passes.flow import run_flow
from snnc.compiler.tiles.partition.candidates import Candidates, find_candidates
from snnc.compiler.tiles.partition.correspondence import Correspondence, correspond
from snnc.compiler.tiles.partition.split import Parting, split


@dataclass(frozen=True, eq=False)
class Prepared:
    """A graph after the flow, and the output that the loss reads (None without a loss)."""

    graph: Graph
    loss_output: str | None

    @cached_property
    def candidates(self) -> Candidates | None:
        """Populations that can be cut; the one that the loss reads stays whole."""
        kept = () if self.loss_output is None else (recorded(self.graph, self.loss_output)[0],)
        return find_candidates(self.graph, kept)

    def lower(self, whole: StepProgram, parting: Parting, **options: Any) -> Correspondence:
        """Cut the graph and lower it as `whole` was, with the same `options` of :func:`snnc.compiler.lowering.lower.lower`.

        Raises
        ------
        UnreachedPartError
            A part has no connection.
        """
        found = split(self.graph, parting)
        program = lower(found.graph, loss_output=self.loss_output, **options)
        return correspond(whole, program, found)


def prepare(graph: Graph, loss: Loss | None = None, loss_output: str | None = None) -> Prepared:
    """Run the default flow over `graph`, with an output for the loss as :func:`snnc.compiler.lowering.lower.lower` chooses it."""
    chosen = None
    if loss is not None:
        graph, chosen = choose_loss_output(graph, loss, loss_output)
    return Prepared(run_flow(graph), chosen)
