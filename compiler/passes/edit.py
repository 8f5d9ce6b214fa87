"""Changes of graphs and questions about them, shared by passes.

All changes except :func:`without` modify the graph that they get, so passes copy it first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from snnc.compiler.ir.graph import Edge, Flatten, Graph, Linear, Operation, Population, Reshape, Sparse
from snnc.compiler.ir.shapes import PortMap, compatible, port_map


def add_edge(graph: Graph, edge: Edge) -> None:
    """Add `edge` to `graph`."""
    graph.nx.add_edge(edge.source, edge.target, edge=edge)


def joined(before: Edge, after: Edge) -> Edge:
    """Return the edge from the source of `before` to the target of `after`, with the delays of both."""
    return replace(after, source=before.source, source_port=before.source_port, delay=before.delay + after.delay)


def replace_operation(graph: Graph, name: str, operation: Operation) -> None:
    """Replace the operation of node `name`; its edges are kept."""
    graph.nx.nodes[name]["operation"] = operation


def fresh_name(graph: Graph, wanted: str) -> str:
    """Return `wanted`, with a number appended if the name is taken."""
    name, number = wanted, 1
    while name in graph.nx:
        number += 1
        name = f"{wanted}{number}"
    return name


def has_initial_value(graph: Graph, edge: Edge) -> bool:
    """Return whether the source of `edge`, such as a state, may be nonzero before the first step.

    If so, `edge` cannot be joined with a delayed edge after it: the delayed edge delivers 0 until the first delayed value arrives, but the
    joined edge would deliver the initial value.
    """
    source = graph.operation(edge.source)
    state = isinstance(source, Population) and edge.source_port in source.model.states
    return state or any(ref.node == edge.source and ref.name == edge.source_port for ref in graph.state_inputs.values())


def can_bypass(graph: Graph, name: str, ports: PortMap) -> bool:
    """Return whether `name`, which passes its only input on unchanged, can be removed without changing shapes or initial values."""
    (before,) = graph.incoming(name)
    if before.source == name:
        return False
    source = ports[before.source, before.source_port].shape
    for after in graph.outgoing(name):
        if after.delay and has_initial_value(graph, before):
            return False
        match graph.operation(after.target):
            case Linear() | Sparse() | Flatten() | Reshape():
                continue
            case Population(shape=shape):
                fits = compatible(source, shape)
            case _:  # derives its shape from its input
                fits = source == ports[name, "out"].shape
        if not fits:
            return False
    return True


def without(graph: Graph, names: Iterable[str]) -> Graph:
    """Return a copy of `graph` without the nodes `names`, each of which passes its only input on; nodes that must stay are kept."""
    graph = graph.copy()
    for name in names:
        if can_bypass(graph, name, port_map(graph)):
            bypass(graph, name)
    return graph


def bypass(graph: Graph, name: str) -> None:
    """Remove `name`, and connect its source to the nodes that read it; delays are added."""
    (before,) = graph.incoming(name)
    for after in graph.outgoing(name):
        add_edge(graph, joined(before, after))
    graph.nx.remove_node(name)


def insert_population(graph: Graph, name: str, wanted: str, population: Population) -> None:
    """Insert a population, called `wanted` or `wanted` with a number, between the node `name` and the nodes that read it."""
    new = graph.add(fresh_name(graph, wanted), population)
    after = graph.outgoing(name)
    graph.nx.remove_edges_from(list(graph.nx.out_edges(name, keys=True)))
    add_edge(graph, Edge(name, new, "out", population.model.inputs[0]))
    for edge in after:
        add_edge(graph, replace(edge, source=new, source_port=population.model.outputs[0]))
