"""Load a NIR file as the graph of one time step."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.verify import verify
from snnc.frontends.nir.build import build, delay_steps
from snnc.frontends.nir.dialects import Dialect, find_dialect
from snnc.frontends.nir.errors import NirTimeStepError, NirTooLargeError
from snnc.frontends.nir.reading.described import described_graph
from snnc.frontends.nir.reading.fields import FIRING, NEURONS, POSITIVE, NirGraph, NirNode
from snnc.frontends.nir.reading.flatten import Edge, Flat, flatten
from snnc.frontends.nir.reading.infer import infer
from snnc.frontends.nir.reading.reader import read_nir
from snnc.frontends.nir.wiring import closing_edges


def load_nir(path: str | Path, *, dt: float | None = None, dialect: str = "nir") -> Graph:
    """Read a NIR file and return one forward-Euler step of it as a graph.

    `dt`, in seconds per step, defaults to the file's metadata, else to the dialect's value. `dialect` selects the conventions of the
    standard (nir), or of the framework that wrote the file (snntorch, norse, spikingjelly, spyx). Raises a NirError if the file is invalid,
    or snnc cannot read a part of it; the message says which.
    """
    return load_described(path, dt=dt, dialect=dialect)[0]


def load_described(path: str | Path, *, dt: float | None = None, dialect: str = "nir") -> tuple[Graph, bool]:
    """Load a file like :func:`load_nir`; also return whether the graph comes from snnc's description in the file."""
    path = Path(path)
    conventions = find_dialect(dialect)
    try:
        file = read_nir(path)
        graph = _load(path.stem, file, dt, conventions)
        result = graph if file.notes is None else described_graph(file.notes, graph, conventions)
        return result, result is not graph
    except (RecursionError, MemoryError) as error:
        raise NirTooLargeError(f"{path} is nested too deeply or needs more memory than is available ({type(error).__name__}).") from None


def _load(name: str, file: NirGraph, dt: float | None, dialect: Dialect) -> Graph:
    step, note = _time_step(file, dt, dialect)
    flat = flatten(_bypassed(file) if dialect.recurrent_bypass else file)
    notes = [note, dialect.note]
    shapes = infer(flat)
    node_delays = {n: delay_steps(node, step, notes) for n, node in flat.nodes.items() if node.type == "Delay"}
    late = [edge for edge in flat.edges if dialect.late_output and flat.nodes[edge[0]].type in FIRING]
    edge_delays = dict.fromkeys(late, 1)
    # A Delay node that delays all its values breaks a cycle, so the edges to it count as delayed here.
    into_delays = {edge: 1 for edge in flat.edges if edge[1] in node_delays and node_delays[edge[1]].min() > 0}
    closing = closing_edges(flat, {**edge_delays, **into_delays})
    for edge in closing:
        edge_delays[edge] = edge_delays.get(edge, 0) + 1
    graph = build(name, flat, shapes, edge_delays, node_delays, dt=step, dialect=dialect)
    graph.assumptions = [text for text in (*notes, *_notes_about(flat, step, closing), *flat.notes) if text]
    verify(graph)
    return graph


def _time_step(file: NirGraph, dt: float | None, dialect: Dialect) -> tuple[float, str]:
    seconds, source = dt, "given"
    if seconds is None and "dt" in file.metadata:
        seconds, source = file.metadata["dt"], "from the file's metadata"
    if seconds is None:
        return dialect.dt, f"The file does not define a time step; dt = {dialect.dt:g} s is assumed (to change it: --dt SECONDS)."
    if not math.isfinite(seconds) or seconds <= 0:
        raise NirTimeStepError(f"dt is {seconds:g} ({source}); it must be a positive number of seconds.")
    return float(seconds), f"dt = {seconds:g} s, {'as given' if source == 'given' else 'from the metadata of the file'}."


def _notes_about(flat: Flat, dt: float, closing: list[Edge]) -> list[str]:
    notes = []
    if closing:
        named = ", ".join(f"{s} -> {t}" for s, t in closing[:6])
        notes.append(f"Edges that close a cycle read the previous step: {named}{', …' if closing[6:] else '.'}")
    for name, node in flat.nodes.items():
        # A time constant that equals dt may be smaller by the rounding of float32.
        short = [f for f in node.fields if f in POSITIVE and np.min(node.fields[f]) < dt * (1 - 1e-6)]
        if short and node.type in NEURONS:
            smallest = min(float(np.min(node.fields[f])) for f in short)
            notes.append(f"{name!r} has a time constant of {smallest:g} s, below dt = {dt:g} s, so forward Euler overshoots; shorten dt.")
    return notes


def _bypassed(graph: NirGraph) -> NirGraph:
    """Connect the input of each nested graph directly to its neurons if the file connects it to their recurrent weights."""
    nodes = {name: _bypassed(node) if isinstance(node, NirGraph) else node for name, node in graph.nodes.items()}
    edges = [
        (source, _neuron_after(graph, target) if graph.path and _is(graph, source, "Input") else target) for source, target in graph.edges
    ]
    return replace(graph, nodes=nodes, edges=tuple(dict.fromkeys(edges)))


def _neuron_after(graph: NirGraph, name: str) -> str:
    """Return the neuron that the linear node `name` feeds if that neuron feeds it back; else return `name`."""
    after = [t for s, t in graph.edges if s == name]
    if _is(graph, name, "Affine", "Linear") and len(after) == 1 and _is(graph, after[0], *FIRING) and (after[0], name) in graph.edges:
        return after[0]
    return name


def _is(graph: NirGraph, name: str, *kinds: str) -> bool:
    node = graph.nodes.get(name)
    return isinstance(node, NirNode) and node.type in kinds
