"""Flatten NIR graphs for the interpreter, and find the order of nodes within a step and the edges that read the previous step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import networkx as nx
import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.frontends.nir.errors import NirSimulationError
from snnc.frontends.nir.reading.fields import FIRING, NEURONS, NirGraph, NirNode

Edge: TypeAlias = tuple[str, str]
Place: TypeAlias = tuple[str, ...]
"""Path of a node: names from the outermost graph inwards."""
SUM: Final = "Sum"
"""Type of nodes that pass on the sum of their inputs: inputs and outputs of nested graphs."""


@dataclass(frozen=True, eq=False)
class Unfolded:
    """A flattened graph: nodes by name, and edges."""

    nodes: Mapping[str, NirNode]
    edges: tuple[Edge, ...]

    def sources(self) -> dict[str, list[str]]:
        """Return the sources of each node's incoming edges, in order."""
        sources: dict[str, list[str]] = {name: [] for name in self.nodes}
        for source, target in self.edges:
            sources[target].append(source)
        return sources

    def targets(self) -> dict[str, list[str]]:
        """Return the targets of each node's outgoing edges, in order."""
        targets: dict[str, list[str]] = {name: [] for name in self.nodes}
        for source, target in self.edges:
            targets[source].append(target)
        return targets


def unfold(graph: NirGraph, *, bypass_weights: bool = False) -> Unfolded:
    """Flatten nested graphs, and add Inputs and Outputs to nodes without incoming or outgoing edges.

    With `bypass_weights`, a nested graph's Input is connected directly to the neurons if the file connects it to their recurrent weights.
    An edge to a missing node, or to a nested graph with several inputs or outputs, raises a NirSimulationError.
    """
    places: dict[Place, NirNode] = {}
    links: dict[tuple[Place, Place], None] = {}
    _collect(graph, (), places, links, bypass_weights)
    names: dict[Place, str] = {}
    nodes: dict[str, NirNode] = {}
    for place, node in places.items():
        names[place] = _unused(".".join(place), nodes)
        nodes[names[place]] = replace(node, type=SUM) if len(place) > 1 and node.type in ("Input", "Output") else node
    edges = [(names[source], names[target]) for source, target in links]
    reached, leaving = {target for _, target in edges}, {source for source, _ in edges}
    for name, node in list(nodes.items()):
        if node.type in ("Input", "Output", SUM):
            continue
        if name not in reached:
            end = _unused(f"input_{name}", nodes)
            nodes[end] = NirNode(end, "Input")
            edges.append((end, name))
        if name not in leaving:
            end = _unused(f"output_{name}", nodes)
            nodes[end] = NirNode(end, "Output")
            edges.append((name, end))
    return Unfolded(nodes, tuple(edges))


def _collect(
    graph: NirGraph, place: Place, places: dict[Place, NirNode], links: dict[tuple[Place, Place], None], bypass_weights: bool
) -> None:
    for name, member in graph.nodes.items():
        if isinstance(member, NirGraph):
            _collect(member, (*place, name), places, links, bypass_weights)
        else:
            places[*place, name] = member
    for source, target in graph.edges:
        end = _neuron_after(graph, source, target) if place and bypass_weights else target
        links[_end(graph, place, source, "Output"), _end(graph, place, end, "Input")] = None


def _end(graph: NirGraph, place: Place, name: str, kind: str) -> Place:
    """Return the end of an edge at `name`: the node itself, or the only Input or Output of a graph."""
    member = graph.nodes.get(name)
    if member is None:
        raise NirSimulationError(f"an edge refers to {name[:60]!r}, which is not in the graph {graph.path!r}.")
    if isinstance(member, NirNode):
        return (*place, name)
    ends = [inner for inner, node in member.nodes.items() if isinstance(node, NirNode) and node.type == kind]
    if len(ends) != 1:
        raise NirSimulationError(f"an edge refers to the graph {name[:60]!r}, which has {len(ends)} nodes of type {kind} instead of one.")
    return (*place, name, ends[0])


def _neuron_after(graph: NirGraph, source: str, target: str) -> str:
    """Return the neuron that `target` feeds if `target` is its recurrent weight matrix and `source` the graph's Input; else `target`."""

    def type_of(name: str) -> str:
        member = graph.nodes.get(name)
        return member.type if isinstance(member, NirNode) else ""

    readers = [t for s, t in graph.edges if s == target]
    is_recurrent = len(readers) == 1 and type_of(readers[0]) in FIRING and (readers[0], target) in graph.edges
    return readers[0] if is_recurrent and type_of(source) == "Input" and type_of(target) in ("Linear", "Affine") else target


def _unused(name: str, taken: Mapping[str, object]) -> str:
    names = (name if not number else f"{name}_{number}" for number in range(len(taken) + 1))
    return next(n for n in names if n not in taken)


def delay_steps(unfolded: Unfolded, dt: float) -> dict[str, Array]:
    """Return, for each Delay node, the delay of each of its values in whole steps."""
    return {
        name: np.rint(np.asarray(node.fields["delay"], np.float64) / dt).astype(np.int64)
        for name, node in unfolded.nodes.items()
        if node.type == "Delay"
    }


def edge_lags(unfolded: Unfolded, delays: Mapping[str, Array], *, late_spikes: bool) -> dict[Edge, int]:
    """Return the lag of each edge: 1 if it reads the previous step, else 0.

    Edges that close a cycle read the previous step, and with `late_spikes` those that leave a spiking neuron. `delays` are the delays of
    Delay nodes in steps. A cycle with neither a neuron nor a delay raises a NirSimulationError.
    """
    lags = {edge: int(late_spikes and unfolded.nodes[edge[0]].type in FIRING) for edge in unfolded.edges}
    delayed = {edge for edge in unfolded.edges if lags[edge] or _delays_all(edge[1], delays)}
    stateless = [e for e in unfolded.edges if e not in delayed and not {unfolded.nodes[n].type for n in e} & NEURONS]
    _sorted(unfolded.nodes, stateless)  # raises the error
    sources, targets = unfolded.sources(), unfolded.targets()
    for edge in list(_back_edges(unfolded, delayed)):
        source, moved = edge[0], edge  # the delay moves to a neuron's output if a single path leads from there to this edge
        while unfolded.nodes[source].type not in NEURONS:
            if len(sources[source]) != 1 or len(targets[source]) != 1 or (sources[source][0], source) in delayed:
                moved = edge
                break
            moved = (sources[source][0], source)
            source = moved[0]
        lags[moved] = 1
    return lags


def _delays_all(name: str, delays: Mapping[str, Array]) -> bool:
    return name in delays and delays[name].min() > 0


def _back_edges(unfolded: Unfolded, delayed: set[Edge]) -> Iterator[Edge]:
    """Yield the back edges of a depth-first traversal from the inputs, in file order."""
    targets = unfolded.targets()
    inputs = [name for name, node in unfolded.nodes.items() if node.type == "Input"]
    state: dict[str, str] = {}
    for start in (*inputs, *unfolded.nodes):
        work = [(start, 0)]
        while work:
            name, position = work.pop()
            if position == 0:
                if name in state:
                    continue
                state[name] = "open"
            if position == len(targets[name]):
                state[name] = "done"
                continue
            work.append((name, position + 1))
            target = targets[name][position]
            if (name, target) in delayed:
                continue
            if state.get(target) == "open":
                yield name, target
            elif target not in state:
                work.append((target, 0))


def step_order(unfolded: Unfolded, edges: Mapping[Edge, int], delays: Mapping[str, Array]) -> list[str]:
    """Return the nodes in evaluation order within a step; `edges` contains the lags from :func:`edge_lags`."""
    return _sorted(unfolded.nodes, [edge for edge, lag in edges.items() if not lag and not _delays_all(edge[1], delays)])


def _sorted(nodes: Iterable[str], edges: Iterable[Edge]) -> list[str]:
    """Return the nodes in topological order; ties keep the given order."""
    rank = {name: number for number, name in enumerate(nodes)}
    graph: nx.DiGraph[str] = nx.DiGraph(edges)
    graph.add_nodes_from(rank)
    try:
        return list(nx.lexicographical_topological_sort(graph, key=rank.__getitem__))
    except nx.NetworkXUnfeasible:
        raise NirSimulationError("a cycle contains neither a neuron nor a delay of at least one step.") from None
