"""Populations of a graph that can be cut into parts, the connections among their neurons, and the lowering of the cut graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from snnc.compiler.ir.arrays.sparse import pattern_of
from snnc.compiler.ir.connections import recorded
from snnc.compiler.ir.graph import Array, Edge, Flatten, Graph, Linear, Output, Population, Reshape, Sparse
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import Loss
from snnc.compiler.lowering.composed_loss import with_loss_output
from snnc.compiler.lowering.lower import lower
from snnc.compiler.passes.flow import run_flow
from snnc.compiler.tiles.partition.correspondence import Correspondence, correspond
from snnc.compiler.tiles.partition.even import even_order
from snnc.compiler.tiles.partition.hypergraph import Floats, Hypergraph, Ints
from snnc.compiler.tiles.partition.split import Partition, split


@dataclass(frozen=True, eq=False)
class Candidates:
    """Populations that can be cut, in the order of the graph."""

    sizes: Mapping[str, int]
    sources: Ints
    targets: Ints
    """Sending and receiving neuron of each entry of the sparse connections among these populations. Neurons are numbered across all of
    these populations."""
    fan_in: Floats
    fan_out: Floats
    """Number of entries of all sparse connections into each neuron, and out of it."""

    @cached_property
    def first(self) -> dict[str, int]:
        """Index of the first neuron of each population."""
        starts = np.cumsum([0, *self.sizes.values()]).tolist()
        return dict(zip(self.sizes, starts, strict=False))

    @property
    def neurons(self) -> int:
        """Number of neurons of all populations."""
        return sum(self.sizes.values())

    def hypergraph(self, rates: Mapping[str, Array], work: Floats) -> Hypergraph:
        """Return the hypergraph of neurons: a net contains a neuron and its targets, with the neuron's spikes per step as weight.

        `rates` contains, by population, the spikes per step of each neuron, or one number for all of them; populations that are not listed
        have a rate of 1. `work` is the work of each neuron, in any unit.
        """
        rate = np.concatenate([np.broadcast_to(np.asarray(rates.get(p, 1.0), np.float64).reshape(-1), n) for p, n in self.sizes.items()])
        sending = np.unique(self.sources)
        nets = np.concatenate([self.sources, sending])
        pins = np.concatenate([self.targets, sending])
        return Hypergraph.of(np.searchsorted(sending, nets), pins, rate[sending], work)

    def partition(self, part: Ints) -> Partition:
        """Return the partition that assigns neuron i to ``part[i]``; within a part, neurons are ordered so that work is spread evenly."""
        neurons_of = {name: slice(first, first + self.sizes[name]) for name, first in self.first.items()}
        places = {name: self._places(part[neurons], neurons) for name, neurons in neurons_of.items()}
        return Partition({name: part[neurons] for name, neurons in neurons_of.items()}, places)

    def _places(self, part: Ints, neurons: slice) -> Ints:
        work, places = np.stack([self.fan_in[neurons], self.fan_out[neurons]]), np.zeros(len(part), dtype=np.int64)
        for members in Partition({"": part}).members(""):
            places[members[even_order(work[:, members])]] = np.arange(len(members))
        return places


def find_candidates(graph: Graph, excluded: Collection[str] = ()) -> Candidates | None:
    """Find the populations that can be cut into parts; None if there are none.

    They have only Linear and Sparse connections, and a Sparse connection with each other or with themselves, but no Linear connection with
    each other or with themselves. Populations in `excluded`, such as the one that a loss reads, stay whole. `graph` is the result of the
    default flow of passes.
    """
    divisible = {name for name, population in graph.of_type(Population) if name not in excluded and _can_be_cut(graph, name, population)}
    ends = {name: (graph.incoming(name)[0].source, graph.outgoing(name)[0].target) for name, _ in graph.of_type(Linear, Sparse)}
    sparse = [pair for name, pair in ends.items() if isinstance(graph.operation(name), Sparse)]
    dense = [pair for name, pair in ends.items() if isinstance(graph.operation(name), Linear)]
    divisible = _with_sparse_connection(divisible, sparse)
    # A dense connection would connect every part of its source with every part of its target.
    divisible -= {end for pair in dense if divisible.issuperset(pair) for end in pair}
    divisible = _with_sparse_connection(divisible, sparse)
    if not divisible:
        return None
    return _count_entries(graph, {n: size(p.shape) for n, p in graph.of_type(Population) if n in divisible}, ends)


def _with_sparse_connection(populations: set[str], sparse: Sequence[tuple[str, str]]) -> set[str]:
    """Return those of `populations` that have a sparse connection with one of `populations`, possibly with themselves."""
    return {end for pair in sparse if populations.issuperset(pair) for end in pair}


def _can_be_cut(graph: Graph, name: str, population: Population) -> bool:
    """Return whether a population can be cut: its neurons share no learned value, and its connections can be divided by neuron."""
    for parameter in population.learnable:
        if np.ndim(population.parameters.get(parameter, population.model.parameters[parameter])) == 0:
            return False  # one learned value for all neurons
    before = all(isinstance(graph.operation(e.source), Linear | Sparse) for e in graph.incoming(name))
    return before and bool(graph.incoming(name)) and all(_reads_separately(graph, edge) for edge in graph.outgoing(name))


def _reads_separately(graph: Graph, edge: Edge) -> bool:
    """Return whether the target of `edge` can be divided by neuron: a connection or an output, or a reshape that only outputs read."""
    operation = graph.operation(edge.target)
    if isinstance(operation, Flatten | Reshape):
        return all(isinstance(graph.operation(after.target), Output) for after in graph.outgoing(edge.target))
    return isinstance(operation, Linear | Sparse | Output)


def _count_entries(graph: Graph, sizes: Mapping[str, int], ends: Mapping[str, tuple[str, str]]) -> Candidates:
    """Return the candidates with the numbers of entries into and out of each neuron; `ends` are source and target by connection."""
    first = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    neurons = sum(sizes.values())
    sources, targets = [], []
    fan_in, fan_out = np.zeros(neurons), np.zeros(neurons)
    for name, (source, target) in ends.items():
        operation = graph.operation(name)
        if not isinstance(operation, Sparse):
            continue
        pattern = pattern_of(operation)
        columns, rows = pattern.indices.astype(np.int64), pattern.rows.astype(np.int64)
        if target in sizes:
            fan_in += np.bincount(first[target] + rows, minlength=neurons)
        if source in sizes:
            fan_out += np.bincount(first[source] + columns, minlength=neurons)
        if source in sizes and target in sizes:
            sources.append(first[source] + columns)
            targets.append(first[target] + rows)
    return Candidates(sizes, np.concatenate(sources), np.concatenate(targets), fan_in, fan_out)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A graph after the default flow of passes, with the output that the loss reads and the loss; both are None without a loss."""

    graph: Graph
    loss_output: str | None
    loss: Loss | None = None

    @cached_property
    def candidates(self) -> Candidates | None:
        """Populations that can be cut; the population that the loss reads stays whole."""
        excluded = () if self.loss_output is None else (recorded(self.graph, self.loss_output)[0],)
        return find_candidates(self.graph, excluded)

    def lower(self, whole: StepProgram, partition: Partition, **options: Any) -> Correspondence:
        """Cut the graph into the parts of `partition`, and lower it; raise an UnreachedPartError if a part has no connection.

        `options` are the arguments of :func:`snnc.compiler.lowering.lower.lower` with which `whole`, the uncut graph, was lowered.
        """
        cut = split(self.graph, partition)
        program = lower(cut.graph, loss_output=self.loss_output, **options | {"loss": self.loss})
        return correspond(whole, program, cut)


def prepare(graph: Graph, loss: Loss | None = None, loss_output: str | None = None) -> Prepared:
    """Run the default flow over `graph`, with an output for the loss chosen as in :func:`snnc.compiler.lowering.lower.lower`."""
    chosen = None
    if loss is not None:
        graph, chosen, loss = with_loss_output(graph, loss, loss_output)
    return Prepared(run_flow(graph), chosen, loss)
