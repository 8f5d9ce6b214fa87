"""Flatten nested NIR graphs into one graph without nested graphs."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from snnc.frontends.nir.errors import NirEdgeError, NirNestingError, NirUnconnectedError
from snnc.frontends.nir.reading.fields import NirGraph, NirNode

Edge: TypeAlias = tuple[str, str]
JUNCTION: Final = "Junction"
"""Type of nodes that replace the Input and Output of a nested graph; they pass on the sum of their inputs."""


@dataclass
class Flat:
    """A flattened graph: nodes by path, edges, and sentences for the user about how it differs from the file."""

    nodes: dict[str, NirNode] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _into: dict[str, list[str]] = field(default_factory=dict)
    _out_of: dict[str, list[str]] = field(default_factory=dict)

    def connect(self, source: str, target: str) -> None:
        """Add an edge."""
        self.edges.append((source, target))
        self._into.setdefault(target, []).append(source)
        self._out_of.setdefault(source, []).append(target)

    def into(self, name: str) -> list[str]:
        """Return the sources of edges to `name`."""
        return self._into.get(name, [])

    def out_of(self, name: str) -> list[str]:
        """Return the targets of edges from `name`."""
        return self._out_of.get(name, [])


def flatten(graph: NirGraph) -> Flat:
    """Inline nested graphs; an edge to a nested graph enters its only Input, an edge from it leaves its only Output.

    Raises a NirError if an edge is invalid, a nested graph does not have exactly one Input or Output for its edges, or a node is not
    connected.
    """
    flat = Flat()
    _inline(graph, flat, outermost=True)
    _add_ends(flat)
    return flat


def _inline(graph: NirGraph, flat: Flat, *, outermost: bool) -> dict[str, tuple[str, str]]:
    """Copy `graph` into `flat`; return the paths at which edges enter and leave each of its nodes."""
    ends: dict[str, tuple[str, str]] = {}
    for name, node in graph.nodes.items():
        if isinstance(node, NirGraph):
            inner = _inline(node, flat, outermost=False)
            ends[name] = (_only(node, "Input", inner, 0), _only(node, "Output", inner, 1))
            continue
        if not outermost and node.type in ("Input", "Output"):
            node = replace(node, type=JUNCTION)  # noqa: PLW2901 - the same node, with another type
        path = unused_name(node.path, flat.nodes)
        flat.nodes[path] = node
        ends[name] = (path, path)
    _check_edges(graph, ends)
    for source, target in graph.edges:
        flat.connect(_end(graph, source, ends, 1), _end(graph, target, ends, 0))
    return ends


def _only(graph: NirGraph, kind: Literal["Input", "Output"], ends: dict[str, tuple[str, str]], side: int) -> str:
    """Return the path at which edges enter (side 0) or leave (side 1) the graph's only Input or Output; empty if it has none or several."""
    nodes = [name for name, node in graph.nodes.items() if isinstance(node, NirNode) and node.type == kind]
    return ends[nodes[0]][side] if len(nodes) == 1 else ""


def _end(graph: NirGraph, name: str, ends: dict[str, tuple[str, str]], side: int) -> str:
    """Return the path at which edges enter (side 0) or leave (side 1) the node `name`."""
    path = ends[name][side]
    if not path:
        node = graph.nodes[name]
        kind = "Output" if side else "Input"
        count = sum(isinstance(n, NirNode) and n.type == kind for n in node.nodes.values()) if isinstance(node, NirGraph) else 0
        raise NirNestingError(
            f"the graph {name!r} has {count} nodes of type {kind}, so an edge {'from' if side else 'to'} it has no meaning; "
            "give it exactly one."
        )
    return path


def _check_edges(graph: NirGraph, ends: dict[str, tuple[str, str]]) -> None:
    where = f"the graph {graph.path!r}" if graph.path else "the graph"
    seen: set[Edge] = set()
    for edge in graph.edges:
        source, target = edge
        for name in edge:
            if name not in ends:
                known = ", ".join(sorted(ends)[:20])
                raise NirEdgeError(
                    f"the edge {source!r} -> {target!r} of {where} names {name[:100]!r}, which is not among its nodes: {known}."
                )
        if edge in seen:
            raise NirEdgeError(f"the edge {source!r} -> {target!r} of {where} occurs twice; NIR allows at most one edge between two nodes.")
        seen.add(edge)
        for name, kind, role in ((source, "Output", "leaves"), (target, "Input", "enters")):
            node = graph.nodes[name]
            if isinstance(node, NirNode) and node.type == kind:
                raise NirEdgeError(f"the edge {source!r} -> {target!r} of {where} {role} {name!r}, the graph's {kind}; reverse it.")


def _add_ends(flat: Flat) -> None:
    """Add an Input to nodes without a source and an Output to nodes without a target, as the nir package does."""
    if not flat.edges:
        raise NirUnconnectedError(f"the graph has {len(flat.nodes)} nodes and no edges; connect an Input with an Output.")
    for name, node in list(flat.nodes.items()):
        if node.type in ("Input", "Output", JUNCTION):
            _check_end(name, node, flat)
            continue
        if not flat.into(name):
            flat.connect(_end_node("Input", name, flat), name)
        if not flat.out_of(name):
            flat.connect(name, _end_node("Output", name, flat))
    for kind in ("Input", "Output"):
        if not any(node.type == kind for node in flat.nodes.values()):
            raise NirUnconnectedError(f"the graph has no {kind}; add one.")


def _end_node(kind: str, name: str, flat: Flat) -> str:
    end = unused_name(f"{kind.lower()}_{name}", flat.nodes)
    flat.nodes[end] = NirNode(end, kind)
    flat.notes.append(f"{name!r} has no {kind} in the file; snnc added the {kind.lower()} {end!r}, as the nir package does.")
    return end


def _check_end(name: str, node: NirNode, flat: Flat) -> None:
    reached, leads = bool(flat.into(name)), bool(flat.out_of(name))
    if node.type == "Output" and not reached:
        raise NirUnconnectedError(f"the output {name!r} has no source; connect it or remove it.")
    if node.type == "Input" and not leads:
        raise NirUnconnectedError(f"the input {name!r} has no target; connect it or remove it.")
    if node.type == JUNCTION and not (reached and leads):
        what = "has no target" if reached else "has no source"
        raise NirUnconnectedError(f"{name!r}, an end of a nested graph, {what}; connect it.")


def unused_name(wanted: str, names: Container[str]) -> str:
    """Return `wanted`, with a number appended if it is in `names`."""
    name, number = wanted, 1
    while name in names:
        name, number = f"{wanted}_{number}", number + 1
    return name
