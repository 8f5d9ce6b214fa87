"""Convert a NIR graph without nested graphs to the graph of one time step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import networkx as nx
import numpy as np

from snnc.compiler.ir.graph import Add, Array, Flatten, Graph, Input, Linear, OneToOne, Operation, Output, Population, Reshape
from snnc.frontends.nir.dialects import Dialect
from snnc.frontends.nir.errors import NirFieldError, NirTimeStepError
from snnc.frontends.nir.neurons import population
from snnc.frontends.nir.reading.fields import NirNode
from snnc.frontends.nir.reading.flatten import Edge, Flat, unused_name
from snnc.frontends.nir.reading.infer import Shapes
from snnc.frontends.nir.windows import window_operation
from snnc.frontends.nir.wiring import DelayedEdge, dissolve

MAX_DELAY: Final = 65_535
"""Maximum number of steps of a delay."""
_ROUNDING: Final = 1e-3
"""Maximum rounding error of a delay, in steps, without a note; float32 causes smaller errors in delays of up to 16,000 steps."""


def delay_steps(node: NirNode, dt: float, notes: list[str]) -> Array:
    """Return the delays of a Delay node in whole steps: one number if all are equal, else one per value.

    A negative or too long delay raises a NirError.
    """
    seconds = np.asarray(node.fields["delay"], np.float64)
    if seconds.min() < 0:
        raise NirFieldError(f"delay of {node.path!r} (Delay) is {seconds.min():g} s; a delay must be 0 s or longer.")
    exact = seconds / dt
    if exact.max() > MAX_DELAY:
        raise NirTimeStepError(
            f"the delay of {node.path!r}, {seconds.max():g} s, is {exact.max():,.0f} steps of {dt:g} s, more than the maximum of "
            f"{MAX_DELAY:,}. Use a longer dt."
        )
    steps = np.rint(exact).astype(np.int64)
    error = np.abs(steps - exact).max()
    if error > _ROUNDING:
        notes.append(f"The delays of {node.path!r} are rounded to whole steps of {dt:g} s, by up to {error:.2g} steps.")
    return steps.reshape(-1)[:1] if (steps == steps.flat[0]).all() else steps


def build(
    name: str, flat: Flat, shapes: Shapes, edge_delays: Mapping[Edge, int], node_delays: Mapping[str, Array], *, dt: float, dialect: Dialect
) -> Graph:
    """Return the graph `name` for a flattened NIR graph, whose nodes have these input and output `shapes`.

    `edge_delays` are the delays of edges in steps, and `node_delays` those of Delay nodes, from :func:`delay_steps`. `dt` is in seconds per
    step, and the conventions of `dialect` apply.
    """
    uniform = {n: int(steps[0]) for n, steps in node_delays.items() if steps.size == 1}
    first_nodes = {n: unused_name(f"{n}.in", flat.nodes) for n in node_delays if n not in uniform}
    links = [DelayedEdge(s, first_nodes.get(t, t), edge_delays.get((s, t), 0) + uniform.get(t, 0)) for s, t in flat.edges]
    operations = {n: _operation(node, n, shapes, dt, dialect) for n, node in flat.nodes.items()}
    # A Delay node with several delays becomes an Add, in `first_nodes`, and a masked branch for each delay, which the node itself sums.
    for node, first in first_nodes.items():
        operations[first] = Add()
        steps = node_delays[node].reshape(shapes.entering[node])
        for delay in np.unique(steps).tolist():
            part = unused_name(f"{node}.{delay}", operations)
            operations[part] = OneToOne((steps == delay).astype(np.float32))
            links += [DelayedEdge(first, part, delay), DelayedEdge(part, node)]
    links, dissolved = dissolve(links, [n for n, operation in operations.items() if isinstance(operation, Add)])
    return _assembled(Graph(name), {n: o for n, o in operations.items() if n not in dissolved}, links)


def _assembled(graph: Graph, operations: Mapping[str, Operation], links: list[DelayedEdge]) -> Graph:
    """Add operations, in dataflow order, and links to `graph`, with an Add before operations that accept one edge but have several."""
    sources = Counter(link.target for link in links)
    enter: dict[str, str] = {}
    immediate: nx.DiGraph[str] = nx.DiGraph()
    immediate.add_nodes_from(operations)
    immediate.add_edges_from((link.source, link.target) for link in links if not link.delay)
    for name in nx.topological_sort(immediate):
        operation = enter[name] = graph.add(name, operations[name])
        if sources[name] > 1 and not isinstance(operations[name], Population | Add):
            enter[name] = graph.add(unused_name(f"{name}.sum", [*operations, *graph.names]), Add())
            graph.connect(enter[name], operation)
    for link in links:
        graph.connect(link.source, enter[link.target], delay=link.delay)
    return graph


def _operation(node: NirNode, name: str, shapes: Shapes, dt: float, dialect: Dialect) -> Operation:
    shape = shapes.entering[name]
    match node.type:
        case "Input":
            return Input(shape)
        case "Output":
            return Output()
        case "Affine" | "Linear":
            bias = node.fields.get("bias")
            return Linear(_weights(node.fields["weight"]), None if bias is None else _weights(bias))
        case "Scale":
            scale = _weights(node.fields["scale"])
            return OneToOne(scale.reshape(() if scale.size == 1 else shape))
        case "Flatten":
            return Flatten() if len(shapes.leaving[name]) == 1 else Reshape(shapes.leaving[name])
        case "Delay" | "Junction":
            return Add()
        case "Conv1d" | "Conv2d" | "SumPool2d" | "AvgPool2d":
            return window_operation(node)
        case _:
            return population(node, shape, dt, dialect)


def _weights(array: Array) -> Array:
    return array.astype(np.float32, copy=False)
