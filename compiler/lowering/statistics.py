"""Batch normalisations of a network in training: outputs for their statistics, and the networks that cannot have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from snnc.compiler.errors import StatisticsCycleError
from snnc.compiler.ir.connections import PopulationLink, recurrent
from snnc.compiler.ir.graph import Graph, Output, Population
from snnc.compiler.ir.step_program import OutputInfo, StepProgram
from snnc.compiler.neurons.library.batch_norm import is_batch_norm
from snnc.compiler.passes.edit import fresh_name

_RECORD: Final = " normalised for its statistics"
"""End of the names of outputs that no user sees."""


def normalised(graph: Graph) -> tuple[str, ...]:
    """Return the populations of `graph` that are batch normalisations."""
    return tuple(name for name, population in graph.of_type(Population) if is_batch_norm(population.model))


def with_statistics(graph: Graph) -> Graph:
    """Return `graph` with an output for each batch normalisation."""
    names = normalised(graph)
    graph = graph.copy() if names else graph
    for name in names:
        output = graph.add(fresh_name(graph, f"{name}{_RECORD}"), Output())
        graph.connect(name, output)
    return graph


def check_order(graph: Graph, found: tuple[PopulationLink, ...]) -> None:
    """Refuse a batch normalisation on a cycle.

    Raises
    ------
    StatisticsCycleError
        Naming it.
    """
    ends = {link.target for link in recurrent(found)}
    for name in normalised(graph):
        if name in ends:
            raise StatisticsCycleError(
                f"{name!r} normalises over all steps and is on a recurrent path, so its statistics would depend on themselves; normalise "
                "what enters the recurrent layer instead."
            )


def statistics_outputs(program: StepProgram) -> dict[str, OutputInfo]:
    """Return the output with the values of each batch normalisation, by the id of its population."""
    owners = {buffer: p.id for p in program.populations if is_batch_norm(p.model) for buffer in p.output_buffers.values()}
    return {owners[o.source.buffer]: o for o in program.outputs if o.source.buffer in owners and _RECORD in o.label}


def visible(program: StepProgram, outputs: Iterable[OutputInfo]) -> StepProgram:
    """Return `program` without `outputs` in its list; it still computes them."""
    hidden = {o.id for o in outputs}
    return replace(program, outputs=tuple(o for o in program.outputs if o.id not in hidden)) if hidden else program
