"""Edges with delays: edges that close a cycle read the value of the previous step, and nodes that only pass values on are removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

from snnc.frontends.nir.errors import NirCycleError
from snnc.frontends.nir.reading.fields import NEURONS, NirNode
from snnc.frontends.nir.reading.flatten import Edge, Flat


@dataclass(frozen=True)
class DelayedEdge:
    """An edge between two nodes with a delay in steps."""

    source: str
    target: str
    delay: int = 0


def dissolve(links: Iterable[DelayedEdge], passing: Iterable[str]) -> tuple[list[DelayedEdge], set[str]]:
    """Remove nodes in `passing`, which pass on the sum of their inputs; return the remaining links and the removed nodes.

    The sources of a removed node are connected to its targets. A node with several sources and several targets is kept, so that the number
    of links never grows. A node without sources or targets, or with an edge to itself, is kept, too.
    """
    into: defaultdict[str, list[DelayedEdge]] = defaultdict(list)
    out_of: defaultdict[str, list[DelayedEdge]] = defaultdict(list)
    for link in links:
        into[link.target].append(link)
        out_of[link.source].append(link)
    removed: set[str] = set()
    for name in passing:
        before, after = into[name], out_of[name]
        if min(len(before), len(after)) != 1 or any(link.target == name for link in after):
            continue
        removed.add(name)
        joined = [DelayedEdge(b.source, a.target, b.delay + a.delay) for b in before for a in after]
        for link in before:
            out_of[link.source].remove(link)
        for link in after:
            into[link.target].remove(link)
        for link in joined:
            out_of[link.source].append(link)
            into[link.target].append(link)
        del into[name], out_of[name]
    return [link for incoming in into.values() for link in incoming], removed


def closing_edges(flat: Flat, delayed: Mapping[Edge, int]) -> list[Edge]:
    """Return the edges that need a delay of one step so that every cycle has a delay; edges in `delayed` have one already.

    The graph is traversed depth first from its inputs, in the order in which the file lists edges; an edge back to a node on the current
    path closes a cycle. If a single path leads from a neuron to this edge, the delay moves to the neuron's output, so that the nodes
    between, such as an Affine with a bias, act from step 0 on. A cycle without neuron and delay raises a NirCycleError.
    """
    immediate = {name: [t for t in flat.out_of(name) if not delayed.get((name, t))] for name in flat.nodes}
    _check_cycles(flat, immediate)
    starts = [n for n, node in flat.nodes.items() if node.type == "Input"]
    closing = list(dict.fromkeys(_walk(immediate, [*starts, *flat.nodes])))
    return list(dict.fromkeys(_moved(edge, flat, delayed) for edge in closing))


def _check_cycles(flat: Flat, immediate: Mapping[str, list[str]]) -> None:
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
    """Return `edge`, or the output edge of the neuron before it if a single path without delay connects the two."""
    first = edge
    while flat.nodes[edge[0]].type not in NEURONS:
        sources = flat.into(edge[0])
        if len(sources) != 1 or len(flat.out_of(edge[0])) != 1 or delayed.get((sources[0], edge[0])):
            return first
        edge = (sources[0], edge[0])
    return edge


def plain_links(links: Iterable[DelayedEdge], nodes: Mapping[str, Any]) -> set[DelayedEdge]:
    """Return the links with a delay of one step that can be written as plain edges, because a reader infers their delay.

    `links` connect `nodes` of the file, which are nodes of the nir package by name.
    """
    links = list(links)
    plain = {link for link in links if link.delay == 1}
    while plain:  # a link that becomes a Delay node may change which edges close cycles
        flat = Flat({name: NirNode(name, type(node).__name__) for name, node in nodes.items()})
        for link in links:
            flat.connect(link.source, link.target)
        delayed = {(link.source, link.target): link.delay for link in links if link.delay and link not in plain}
        try:
            closing = set(closing_edges(flat, delayed))
        except NirCycleError:
            return set()
        inferred = {link for link in plain if (link.source, link.target) in closing}
        if inferred == plain:
            break
        plain = inferred
    return plain
