"""Output that a composed loss (a sum of terms) reads: the concatenated inputs of its terms, summed over the neurons of each class."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from snnc.compiler.errors import LossOutputError
from snnc.compiler.ir.graph import Concat, Edge, Flatten, Graph, Output, Population, Reduce, Reshape, source_ports
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.losses import Loss
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.term import Term
from snnc.compiler.lowering.loss_output import choose_loss_output, port_of
from snnc.compiler.passes.edit import fresh_name


def with_loss_output(graph: Graph, loss: Loss, wanted: str | None) -> tuple[Graph, str, Loss]:
    """Return a graph with the output that `loss` reads, the name of this output, and the loss in the form stored in a program.

    The parameters are those of :func:`~snnc.compiler.lowering.loss_output.choose_loss_output`, which selects the output of other losses and
    the values read by terms that name no population. If no output fits the loss, or the number of classes does not divide the size of the
    output, a LossOutputError is raised.
    """
    if not isinstance(loss, Composed) or loss.slices:
        return (*choose_loss_output(graph, loss, wanted), loss)
    inputs: list[_TermInput] = []
    extended = graph
    for term in loss.terms:
        term_input = _term_input(extended, loss, term, wanted)
        extended = term_input.graph
        inputs.append(term_input)
    return _joined(graph, extended, loss, inputs)


@dataclass(frozen=True, eq=False)
class _TermInput:
    """Input of a term: the edge to an output that records it (the output may not exist), its size, and whether neurons are summed by class.

    `graph` is the graph with the outputs chosen so far, and `output` the name of the output if it exists.
    """

    graph: Graph
    edge: Edge
    size: int
    output: str | None
    grouped: bool

    @property
    def place(self) -> tuple[str, str, int, bool]:
        """What the term reads: population, port, delay, and whether neurons are summed by class."""
        return (self.edge.source, self.edge.source_port, self.edge.delay, self.grouped)


def _term_input(graph: Graph, loss: Composed, term: Term, wanted: str | None) -> _TermInput:
    """Return the input of a term, from the population that the term names or else from the selected output."""
    if term.of is None:
        graph, output = choose_loss_output(graph, replace(loss, terms=(term,)), wanted)
        (edge,) = graph.incoming(output)
    else:
        edge, output = _edge_of(graph, term, term.of), None
    shapes = port_map(graph)
    size = math.prod(shapes[edge.source, edge.source_port].shape)
    return _TermInput(graph, edge, size, output, loss.classes is not None and term.of is None)


def _edge_of(graph: Graph, term: Term, of: str) -> Edge:
    """Return the edge from the population or port that a term names to an output that would record it."""
    if of in graph.nx and isinstance(graph.operation(of), Population):
        port = port_of(graph, of, term.port)
        if port is not None:
            return Edge(of, "", port)
        raise LossOutputError(f"the population {of!r} has no unique {term.port} for a term of the loss; give '{of}.port'.")
    name, _, port = of.rpartition(".")
    if name in graph.nx and isinstance(operation := graph.operation(name), Population) and port in source_ports(operation):
        return Edge(name, "", port)
    known = ", ".join(repr(name) for name, _ in graph.of_type(Population))
    raise LossOutputError(f"a term of the loss reads {of!r}, which is neither a population ({known}) nor 'population.port'.")


def _joined(graph: Graph, extended: Graph, loss: Composed, inputs: list[_TermInput]) -> tuple[Graph, str, Loss]:
    """Return the result of :func:`with_loss_output`: one output with the inputs of all terms, concatenated.

    If all terms read one output of `extended`, the graph with the outputs chosen for the terms, this output is used; otherwise a new one is
    added to a copy of `graph`.
    """
    first = inputs[loss.terms.index(loss.main)]
    group = 1
    if loss.classes is not None:
        group, rest = divmod(first.size, loss.classes)
        if rest or not group:
            raise LossOutputError(f"the loss has {loss.classes} classes, which do not divide the {first.size} outputs that it reads.")
    places = list(dict.fromkeys(term_input.place for term_input in inputs))
    if len(places) == 1 and group == 1 and first.output is not None:
        slices = ((0, first.size),) * len(inputs)
        return extended, first.output, replace(loss, slices=slices).simplified()
    graph, vectors, columns, width = graph.copy(), list[str](), {}, 0
    for place in places:
        term_input = next(candidate for candidate in inputs if candidate.place == place)
        vectors.append(_vector(graph, term_input, group))
        size = term_input.size // group if term_input.grouped else term_input.size
        columns[place] = (width, width + size)
        width += size
    joined = vectors[0]
    if len(vectors) > 1:
        joined = graph.add(fresh_name(graph, "read by the loss"), Concat())
        for number, vector in enumerate(vectors):
            graph.connect(vector, joined, target_port=str(number))
    output = graph.add(fresh_name(graph, "loss"), Output())
    graph.connect(joined, output)
    return graph, output, replace(loss, slices=tuple(columns[term_input.place] for term_input in inputs), group=group).simplified()


def _vector(graph: Graph, term_input: _TermInput, group: int) -> str:
    """Add the operations that turn the input of a term into a vector, summed over the neurons of each class if it is grouped by class."""
    edge = term_input.edge
    flat = graph.add(fresh_name(graph, f"{edge.source} as a vector"), Flatten())
    graph.connect(edge.source, flat, source_port=edge.source_port, delay=edge.delay)
    if not term_input.grouped or group == 1:
        return flat
    parts = graph.add(fresh_name(graph, f"{edge.source} by class"), Reshape((term_input.size // group, group)))
    graph.connect(flat, parts)
    sums = graph.add(fresh_name(graph, f"classes of {edge.source}"), Reduce("sum", (1,)))
    graph.connect(parts, sums)
    return sums
