"""Order of a graph's operations from the inputs to the outputs."""

from __future__ import annotations

import heapq

import networkx as nx

from snnc.compiler.ir.graph import Edge, Graph, Output, Population


def dataflow_order(graph: Graph) -> list[str]:
    """Return the names of all nodes except outputs, sorted so that sources precede their targets, except along edges that close a cycle.

    A node reached only by edges that close cycles comes just before its first reader, after the reader's other inputs. Ties keep the
    order of insertion.
    """
    rank = {name: number for number, name in enumerate(graph.names)}
    forward = _forward_edges(graph, rank)
    flow: nx.DiGraph[str] = nx.DiGraph()
    flow.add_nodes_from(graph.names)
    flow.add_edges_from((e.source, e.target) for e in forward)
    reached = {e.target for e in forward}
    # Nodes that are reached only by edges that close cycles.
    late = {name for name in graph.names if graph.incoming(name) and name not in reached}
    depth: dict[str, int] = {}
    sources_first = list(nx.topological_sort(flow))
    for name in sources_first:
        depth[name] = 1 + max((depth[s] for s in flow.predecessors(name)), default=-1)
    for name in reversed(sources_first):
        if name in late:
            depth[name] = min((depth[t] for t in flow.successors(name)), default=1) - 1
    ordered = nx.lexicographical_topological_sort(flow, key=lambda name: (depth[name], name in late, rank[name]))
    return [name for name in ordered if not isinstance(graph.operation(name), Output)]


def in_dataflow_order(graph: Graph) -> Graph:
    """Return a copy of `graph` with its nodes in :func:`dataflow_order`, outputs last."""
    ordered = graph.copy()
    ordered.nx = nx.MultiDiGraph()
    order = dataflow_order(graph)
    for name in [*order, *(name for name, _ in graph.of_type(Output))]:
        ordered.nx.add_node(name, **graph.nx.nodes[name])
    for name in ordered.names:
        for edge in graph.incoming(name):
            ordered.nx.add_edge(edge.source, edge.target, edge=edge)
    return ordered


def _forward_edges(graph: Graph, rank: dict[str, int]) -> list[Edge]:
    """Return the edges whose source can precede their target.

    The other edges close a cycle; they are chosen close to an input, and among delayed edges if possible.
    """
    cycle = {name: number for number, members in enumerate(nx.strongly_connected_components(graph.nx)) for name in members}
    outside = {name: {e.source for e in graph.incoming(name) if cycle[e.source] != cycle[name]} for name in graph.names}
    inside = {name: {e.source for e in graph.incoming(name)} - outside[name] for name in graph.names}
    undelayed = {name: {e.source for e in graph.incoming(name) if not e.delay} & inside[name] for name in graph.names}
    entered = {name for name in graph.names if outside[name]}
    distance = _distances(graph)
    position: dict[str, int] = {}
    # A cycle is entered only when no other node is ready: the first element is True for a node that waits for others of its cycle.
    ready: list[tuple[bool, int, bool, int, str]] = []

    def offer(name: str) -> None:
        if not outside[name] and (not undelayed[name] or name in entered):
            heapq.heappush(ready, (bool(inside[name]), distance[name] if inside[name] else 0, bool(undelayed[name]), rank[name], name))

    for name in graph.names:
        offer(name)
    while ready:
        name = heapq.heappop(ready)[-1]
        if name in position:
            continue
        position[name] = len(position)
        for reader in {e.target for e in graph.outgoing(name)} - position.keys():
            for waits in (outside, inside, undelayed):
                waits[reader].discard(name)
            entered.add(reader)
            offer(reader)
    last = len(position)
    return [e for e in graph.edges if cycle[e.source] != cycle[e.target] or position.get(e.source, last) < position.get(e.target, last)]


def _distances(graph: Graph) -> dict[str, int]:
    """Return each node's distance from the inputs, in connections; nodes that no input reaches have the largest distance."""
    starts = {name for name in graph.names if not graph.incoming(name)}
    lengths = nx.multi_source_dijkstra_path_length(graph.nx, starts, weight=lambda *_: 1) if starts else {}
    distance = {name: int(lengths.get(name, len(graph.names))) for name in graph.names}
    undelayed: nx.DiGraph[str] = nx.DiGraph()
    undelayed.add_nodes_from(graph.names)
    undelayed.add_edges_from((e.source, e.target) for e in graph.edges if not e.delay)
    # An operation between populations is at most as far away as its nearest reader without delay.
    for name in reversed(list(nx.topological_sort(undelayed))):
        if not isinstance(graph.operation(name), Population):
            distance[name] = min([distance[name], *(distance[reader] for reader in undelayed.successors(name))])
    return distance
