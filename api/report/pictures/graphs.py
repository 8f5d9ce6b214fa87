"""Write the dataflow graph of a plan as GraphML or DOT."""

from __future__ import annotations

import io
from typing import Any

import networkx as nx

from snnc.report.subject import Subject
from snnc.report.view import ranges


def as_networkx(subject: Subject) -> nx.MultiDiGraph[str]:
    """Return inputs and layers as nodes and connections as edges, with sizes, tiles and predicted bytes; texts are printable."""
    plan, program = subject.plan, subject.program
    models = {p["id"]: p["model"] for p in program.get("populations", [])}
    known = {c["id"]: c for c in program.get("connections", [])}
    buses = {b.id: b for b in plan.buses}
    matrix, nodes = subject.traffic.matrix(), subject.traffic.nodes
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=printable(plan.name))
    for node in nodes:
        if node not in {p.id for p in plan.populations}:
            bus = next(b for b in plan.buses if b.source == node)
            graph.add_node(node, kind="input", label=printable(subject.names.get(node, node)), size=bus.width)
    for p, place in zip(plan.populations, subject.places.layers, strict=True):
        graph.add_node(
            p.id,
            kind="layer",
            label=printable(p.label),
            size=p.neurons,
            model=printable(models.get(p.id, "")),
            stage=p.stage,
            tiles=len(place.tiles),
            tile_runs=" ".join(f"{first}+{count}" for first, count in ranges(place.tiles)),
            replicas=len(place.groups),
        )
    for c in plan.connections:
        bus = buses[c.bus]
        graph.add_edge(
            bus.source,
            c.target,
            key=c.id,
            label=printable(known.get(c.id, {}).get("label", c.id)),
            delay=c.delay,
            moves=bus.kind,
            lag=bus.lag,
            window=bus.capacity,
            bytes_per_step=float(matrix[nodes.index(bus.source), nodes.index(c.target)]),
        )
    return graph


def graphml(subject: Subject) -> str:
    """Return the graph as GraphML; ``bytes_per_step`` counts all connections between two nodes."""
    stream = io.BytesIO()
    nx.write_graphml_xml(as_networkx(subject), stream, named_key_ids=True)
    return stream.getvalue().decode("utf-8")


def dot(subject: Subject) -> str:
    """Return the graph in the DOT language of Graphviz; names are quoted."""
    graph = as_networkx(subject)
    lines = [f"digraph {quoted(graph.graph['name'])} {{", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    for node, data in graph.nodes(data=True):
        detail = f"input, {data['size']:,}"
        if data["kind"] == "layer":
            detail = f"{data['model'] or 'neurons'} {data['size']:,}, {data['tiles']:,} tiles"
        lines.append(f"  {quoted(node)} [{_attributes(data | {'label': data['label'] + chr(10) + detail})}];")
    for source, target, key, data in graph.edges(keys=True, data=True):
        style = {"style": "dashed"} if data["delay"] else {}
        label = f"delay {data['delay']}" if data["delay"] else ""
        shown = {"id": key, **data, "tooltip": data["label"], "label": label, **style}
        lines.append(f"  {quoted(source)} -> {quoted(target)} [{_attributes(shown)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _attributes(data: dict[str, Any]) -> str:
    return ", ".join(f"{name}={quoted(value)}" for name, value in data.items())


def quoted(value: object) -> str:
    """Return a quoted DOT string, with quotes and backslashes escaped so that Graphviz finds no escape sequences."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def printable(text: str) -> str:
    """Replace unprintable characters, because XML cannot contain control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)
