"""Connections between the populations of a graph after all passes, as lowering reads them, and the order in which populations run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import networkx as nx

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Edge, Graph, Population, Shape
from snnc.compiler.ir.shapes import PortMap, size

LinkOperation: TypeAlias = ir.Linear | ir.Sparse | ir.OneToOne | ir.Conv | ir.Pool | ir.Scale | ir.Reduce | ir.Slice | ir.Pad
"""Operations that a connection can apply to the values of its source."""
LINK_OPERATIONS: Final = (ir.Linear, ir.Sparse, ir.OneToOne, ir.Conv, ir.Pool, ir.Scale, ir.Reduce, ir.Slice, ir.Pad, ir.Reshape)
"""Operations that can be one connection between two populations: a `LinkOperation`, or Reshape, which leaves a link without operation."""


@dataclass(frozen=True)
class PopulationLink:
    """One connection from an input or a population to a port of a population.

    `operation` is None if the values arrive unchanged; value k then becomes element ``offset + k`` of the target. `shape` is the shape of
    the source.
    """

    label: str
    operation: LinkOperation | None
    source: str
    source_port: str
    target: str
    target_port: str
    delay: int
    shape: Shape
    offset: int = 0

    @property
    def learnable(self) -> bool:
        """Whether the connection has weights that training may change."""
        return isinstance(self.operation, ir.Weighted) and self.operation.learnable


def links(graph: Graph, ports: PortMap) -> tuple[PopulationLink, ...]:
    """Return all connections, in the order of insertion of their targets and edges."""
    return tuple(link for name, _ in graph.of_type(Population) for edge in graph.incoming(name) for link in _resolved(graph, ports, edge))


def _resolved(graph: Graph, ports: PortMap, edge: Edge) -> Iterator[PopulationLink]:
    """Yield the connections that enter a population by `edge`: one, or one for each input of a Concat."""
    operation = graph.operation(edge.source)

    def link(before: Edge, label: str, operation: LinkOperation | None, delay: int, offset: int = 0) -> PopulationLink:
        shape = ports[before.source, before.source_port].shape
        return PopulationLink(label, operation, before.source, before.source_port, edge.target, edge.target_port, delay, shape, offset)

    match operation:
        case ir.Input() | Population():
            yield link(edge, f"{edge.source} -> {edge.target}", None, edge.delay)
        case ir.Reshape() | ir.OneToOne(weight=None):
            (before,) = graph.incoming(edge.source)
            yield link(before, edge.source, None, before.delay + edge.delay)
        case ir.Pad() as pad if (offset := _offset(pad, ports[edge.source, "out"].shape)) is not None:
            (before,) = graph.incoming(edge.source)
            yield link(before, edge.source, None, before.delay + edge.delay, offset)
        case ir.Linear() | ir.Sparse() | ir.OneToOne() | ir.Conv() | ir.Pool() | ir.Scale() | ir.Reduce() | ir.Slice() | ir.Pad():
            (before,) = graph.incoming(edge.source)
            yield link(before, edge.source, operation, before.delay + edge.delay)
        case ir.Concat():
            offset = 0
            for port in range(len(graph.incoming(edge.source))):
                (before,) = graph.incoming(edge.source, str(port))
                yield link(before, f"{before.source} -> {edge.source}", None, before.delay + edge.delay, offset)
                offset += size(ports[before.source, before.source_port].shape)
        case _:
            raise TypeError(f"{edge.source!r} ({type(operation).__name__}) should have become a relay")


def _offset(pad: ir.Pad, padded: Shape) -> int | None:
    """Return the index of the first value in the padded array, if the values are contiguous in it; None otherwise."""
    axis = next((i for i, n in enumerate(padded) if n > 1), 0)
    if any(any(ends) for i, ends in enumerate(pad.padding) if i != axis):
        return None
    return pad.padding[axis][0] * size(padded[axis + 1 :])


def recorded(graph: Graph, output: str) -> tuple[str, str, int]:
    """Return the source, the port and the delay that `output` records."""
    (edge,) = graph.incoming(output)
    delay = edge.delay
    while isinstance(graph.operation(edge.source), ir.Flatten | ir.Reshape):
        (edge,) = graph.incoming(edge.source)
        delay += edge.delay
    return edge.source, edge.source_port, delay


def execution_order(graph: Graph, connections: tuple[PopulationLink, ...]) -> list[str]:
    """Sort the populations so that the source of every connection without delay precedes its target; ties keep the order of insertion."""
    names = [name for name, _ in graph.of_type(Population)]
    rank = {name: number for number, name in enumerate(names)}
    immediate: nx.DiGraph[str] = nx.DiGraph()
    immediate.add_nodes_from(names)
    immediate.add_edges_from((link.source, link.target) for link in connections if link.delay == 0 and link.source in rank)
    return list(nx.lexicographical_topological_sort(immediate, key=rank.__getitem__))


def recurrent(connections: tuple[PopulationLink, ...]) -> frozenset[PopulationLink]:
    """Return the connections on a cycle."""
    flow: nx.DiGraph[str] = nx.DiGraph()
    flow.add_edges_from((link.source, link.target) for link in connections)
    component = {name: number for number, names in enumerate(nx.strongly_connected_components(flow)) for name in names}
    return frozenset(link for link in connections if component[link.source] == component[link.target])
