"""Batch normalisations in training: outputs and inputs for their statistics, a check that none is on a cycle, and their levels.

:class:`snnc.backends.training.updates.normalising.NormalisingEngine` computes the statistics of each batch with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import networkx as nx

from snnc.compiler.errors import StatisticsCycleError
from snnc.compiler.ir.connections import PopulationLink, recurrent
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.ir.step_operations import NeuronAdjoint
from snnc.compiler.ir.step_program import OutputInfo, StepProgram
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.neurons.library.batch_norm import PORTS, is_batch_norm, normalises_each_step, with_ports
from snnc.compiler.passes.edit import fresh_name, replace_operation

_RECORD: Final = " normalised for its statistics"
"""Suffix of the names of the added outputs, which are hidden from users."""


def normalisations(graph: Graph) -> tuple[str, ...]:
    """Return the populations of `graph` that are batch normalisations."""
    return tuple(name for name, population in graph.of_type(Population) if is_batch_norm(population.model))


def with_statistics(graph: Graph) -> Graph:
    """Return `graph` with an output for each batch normalisation and, if each step has its own statistics, inputs for these."""
    names = normalisations(graph)
    graph = graph.copy() if names else graph
    for name in names:
        output = graph.add(fresh_name(graph, f"{name}{_RECORD}"), Output())
        graph.connect(name, output)
        population = graph.operation(name)
        assert isinstance(population, Population)
        if normalises_each_step(population.model):
            replace_operation(graph, name, replace(population, model=with_ports(population.model)))
            for port in PORTS:
                statistic = graph.add(fresh_name(graph, f"{name} {port}"), Input(population.shape))
                graph.connect(statistic, name, target_port=port)
    return graph


def check_order(graph: Graph, connections: tuple[PopulationLink, ...]) -> None:
    """Raise a StatisticsCycleError if a batch normalisation is on a cycle."""
    ends = {link.target for link in recurrent(connections)}
    for name in normalisations(graph):
        if name in ends:
            raise StatisticsCycleError(
                f"{name!r} is on a recurrent path, so its statistics, which snnc computes over all steps at once, would depend "
                "on themselves; normalise the input of the recurrent layer instead."
            )


def statistics_outputs(program: StepProgram) -> dict[str, OutputInfo]:
    """Return the output with the values of each batch normalisation, by the id of its population."""
    owners = {buffer: p.id for p in program.populations if is_batch_norm(p.model) for buffer in p.output_buffers.values()}
    return {owners[o.source.buffer]: o for o in program.outputs if o.source.buffer in owners and _RECORD in o.label}


def statistics_on_device(program: StepProgram) -> dict[str, OutputInfo]:
    """Return the outputs of :func:`statistics_outputs` whose statistics a program can compute without sending every value to the host.

    The values of the others, those in :func:`summed_adjoints`, are needed on the host.
    """
    summed = summed_adjoints(program)
    return {id_: output for id_, output in statistics_outputs(program).items() if id_ not in summed}


def statistics_inputs(program: StepProgram) -> dict[str, tuple[str, ...]]:
    """Return the inputs for the statistics of each step, in the order of the ports, by the id of their normalisation."""
    norms = {p.id: p for p in program.populations if normalises_each_step(p.model) and len(p.ports) > 1}
    into = {(c.target, c.port): c.source for c in program.connections}
    return {id_: tuple(into[id_, port] for port in range(1, len(p.ports))) for id_, p in norms.items()}


def summed_adjoints(program: StepProgram) -> frozenset[str]:
    """Return the ids of the normalisations for whose gradients the host sums adjoints over all values.

    For the other normalisations, these sums follow from the gradients of gain and bias. They do not if each step has its own statistics,
    or if the gain or the bias after the normalisation is not trained.
    """
    norms = statistics_outputs(program)
    if not norms:
        return frozenset()
    learned = {op.parameter for op in program.update}
    frozen = {c.source for c in program.connections if c.source in norms and not {c.weight, c.bias} <= learned}
    passed = {op.population for op in program.backward if isinstance(op, NeuronAdjoint)}
    return frozenset(statistics_inputs(program)) | (frozen & passed)


def levels_of(program: StepProgram) -> Mapping[str, int]:
    """Return the level of each normalisation, by the id of its population: the maximum number of other normalisations on a path to it."""
    flow: nx.DiGraph[str] = nx.DiGraph()
    flow.add_nodes_from(p.id for p in program.populations)
    flow.add_edges_from((c.source, c.target) for c in program.connections)
    norms = {p.id for p in program.populations if is_batch_norm(p.model)}
    condensed = nx.condensation(flow)
    level: dict[int, int] = {}
    for component in nx.topological_sort(condensed):
        before = [level[other] + bool(norms & condensed.nodes[other]["members"]) for other in condensed.predecessors(component)]
        level[component] = max(before, default=0)
    return {member: level[component] for component in condensed for member in condensed.nodes[component]["members"] if member in norms}


def passes_of(program: StepProgram) -> int:
    """Return the number of levels: an update adds one forward and one backward pass for each, to compute the statistics of its batch.

    0 if the program has no optimiser.
    """
    return len(set(levels_of(program).values())) if program.optimizer is not None else 0


def stored_adjoints(program: StepProgram) -> frozenset[str]:
    """Return the ids of populations for which the adjoints of currents are stored at every step, as ``d_<id>``."""
    relays = program.loss.relays if isinstance(program.loss, ExternalLoss) else ()
    return summed_adjoints(program) | {p.id for p in program.populations if p.label in relays}


def visible(program: StepProgram) -> StepProgram:
    """Return `program` without the inputs and outputs of its statistics; its operations still use them."""
    outputs = {o.id for o in statistics_outputs(program).values()}
    inputs = {id_ for ids in statistics_inputs(program).values() for id_ in ids}
    if not outputs:
        return program
    shown = tuple(i for i in program.inputs if i.id not in inputs)
    return replace(program, inputs=shown, outputs=tuple(o for o in program.outputs if o.id not in outputs))
