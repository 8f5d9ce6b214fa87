"""Find the edges that close a cycle; such an edge reads the value of the previous step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import networkx as nx

from snnc.frontends.nir.errors import NirCycleError
from snnc.frontends.nir.reading.fields import NEURONS, NirNode
from snnc.frontends.nir.reading.flatten import Edge, Flat
from snnc.frontends.nir.wiring import DelayedEdge


def closing_edges(flat: Flat, delayed: Mapping[Edge, int]) -> list[Edge]:
    """Return the edges that need a delay of one step so that every cycle has a delay.

    The graph is traversed depth first from its inputs, in the order in which the file lists edges; an edge back to a node on the current
    path closes a cycle. If a single path leads from a neuron to this edge, the delay moves to the neuron's output, so that the nodes
    between, such as a bias, act from step 0 on.

    Parameters
    ----------
    flat
        The graph.
    delayed
        Edges that already have a delay.

    Raises
    ------
    NirCycleError
        A cycle contains no neuron and no delay.
    """
    immediate = {name: [t for t in flat.out_of(name) if not delayed.get((name, t))] for name in flat.nodes}
    _check_cycles(flat, immediate)
    starts = [n for n, node in flat.nodes.items() if node.type == "Input"]
    closing = list(dict.fromkeys(_walk(immediate, [*starts, *flat.nodes])))
    return list(dict.fromkeys(_moved(edge, flat, delayed) for edge in closing))


def _check_cycles(flat: Flat, immediate: Mapping[str, list[str]]) -> None:
    """Raise an error for a cycle without neurons and delays."""
    stateless: nx.DiGraph[str] = nx.DiGraph()
    for source, targets in immediate.items():
        if flat.nodes[source].type not in NEURONS:
            stateless.add_edges_from((source, t) for t in targets if flat.nodes[t].type not in NEURONS)
    if nx.is_directed_acyclic_graph(stateless):
        return
    cycle = [source for source, _ in nx.find_cycle(stateless)]
    path = " -> ".join(f"{name} ({flat.nodes[name].type})" for name in [*cycle, cycle[0]][:20])
    raise NirCycleError(
        f"the cycle {path} contains neither a neuron nor a delay of at least one step, so its values are undefined; insert one of them."
    )


def _walk(immediate: Mapping[str, list[str]], starts: list[str]) -> Iterator[Edge]:
    """Yield the back edges of a depth-first traversal."""
    done: set[str] = set()
    for start in starts:
        if start in done:
            continue
        path = {start: iter(immediate[start])}
        while path:
            name, targets = next(reversed(path.items()))
            target = next(targets, None)
            if target is None:
                done.add(name)
                del path[name]
            elif target in path:
                yield name, target
            elif target not in done:
                path[target] = iter(immediate[target])


def _moved(edge: Edge, flat: Flat, delayed: Mapping[Edge, int]) -> Edge:
    """Return `edge`, or the output edge of the neuron before it if a single path connects the two."""
    first = edge
    while flat.nodes[edge[0]].type not in NEURONS:
        sources = flat.into(edge[0])
        if len(sources) != 1 or len(flat.out_of(edge[0])) != 1 or delayed.get((sources[0], edge[0])):
            return first
        edge = (sources[0], edge[0])
    return edge


def plain_links(links: Iterable[DelayedEdge], nodes: Mapping[str, Any]) -> set[DelayedEdge]:
    """Return the links with a delay of one step that can be written as plain edges, because a reader infers their delay.

    Parameters
    ----------
    links
        Links between nodes of the file.
    nodes
        Nodes of the nir package by name.
    """
    links = list(links)
    chosen = {link for link in links if link.delay == 1}
    while chosen:
        flat = Flat({name: NirNode(name, type(node).__name__) for name, node in nodes.items()})
        for link in links:
            flat.connect(link.source, link.target)
        delayed = {(link.source, link.target): link.delay for link in links if link.delay and link not in chosen}
        try:
            closing = set(closing_edges(flat, delayed))
        except NirCycleError:
            return set()
        closed = {link for link in chosen if (link.source, link.target) in closing}
        if closed == chosen:
            break
        chosen = closed
    return chosen
