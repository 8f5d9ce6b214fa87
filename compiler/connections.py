"""What lies between the populations of a graph that went through the flow, and in which order they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from snnc.compiler.graph import Concat, Edge, Flatten, Graph, Input, Linear, OneToOne, Population
from snnc.compiler.shapes import PortMap, size


@dataclass(frozen=True)
class Link:
    """One connection from an input or a population to a port of a population.

    `operation` is None for values that arrive as they are; `offset` is where they start in the target.
    """

    label: str
    operation: Linear | OneToOne | None
    source: str
    source_port: str
    target: str
    target_port: str
    delay: int
    offset: int = 0


def links(graph: Graph, ports: PortMap) -> tuple[Link, ...]:
    """Find all connections, by insertion of their targets and edges."""
    return tuple(link for name, _ in graph.of_type(Population) for edge in graph.incoming(name) for link in _resolved(graph, ports, edge))


def _resolved(graph: Graph, ports: PortMap, edge: Edge) -> Iterator[Link]:
    operation = graph.operation(edge.source)
    match operation:
        case Input() | Population():
            yield Link(f"{edge.source} -> {edge.target}", None, edge.source, edge.source_port, edge.target, edge.target_port, edge.delay)
        case Linear() | OneToOne():
            (before,) = graph.incoming(edge.source)
            weighted = operation if operation.weight is not None else None
            delay = before.delay + edge.delay
            yield Link(edge.source, weighted, before.source, before.source_port, edge.target, edge.target_port, delay)
        case Concat():
            offset = 0
            for port in range(len(graph.incoming(edge.source))):
                (before,) = graph.incoming(edge.source, str(port))
                label = f"{before.source} -> {edge.source}"
                delay = before.delay + edge.delay
                yield Link(label, None, before.source, before.source_port, edge.target, edge.target_port, delay, offset)
                offset += size(ports[before.source, before.source_port].shape)
        case _:
            raise TypeError(f"{edge.source!r} ({type(operation).__name__}) should have become a relay")


def recorded(graph: Graph, output: str) -> tuple[str, str, int]:
    """Return the source, its port and the delay of what `output` records."""
    (edge,) = graph.incoming(output)
    delay = edge.delay
    while isinstance(graph.operation(edge.source), Flatten):
        (edge,) = graph.incoming(edge.source)
        delay += edge.delay
    return edge.source, edge.source_port, delay


def execution_order(graph: Graph, found: tuple[Link, ...]) -> list[str]:
    """Sort the populations so that every connection of delay 0 runs forward; ties stand in order of insertion."""
    names = [name for name, _ in graph.of_type(Population)]
    rank = {name: number for number, name in enumerate(names)}
    immediate: nx.DiGraph[str] = nx.DiGraph()
    immediate.add_nodes_from(names)
    immediate.add_edges_from((link.source, link.target) for link in found if link.delay == 0 and link.source in rank)
    return list(nx.lexicographical_topological_sort(immediate, key=rank.__getitem__))


def recurrent(found: tuple[Link, ...]) -> frozenset[Link]:
    """Connections that lie on a cycle."""
    whole: nx.DiGraph[str] = nx.DiGraph()
    whole.add_edges_from((link.source, link.target) for link in found)
    component = {name: number for number, names in enumerate(nx.strongly_connected_components(whole)) for name in names}
    return frozenset(link for link in found if component[link.source] == component[link.target])
