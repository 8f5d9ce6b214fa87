"""One row for each operation of a graph, in the order in which values flow."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np

from snnc.compiler.graph import (
    Add,
    Concat,
    Conv,
    Edge,
    Flatten,
    Graph,
    Input,
    Linear,
    OneToOne,
    Operation,
    Output,
    Pad,
    Pool,
    Population,
    Reduce,
    Reshape,
    Scale,
    Slice,
    Sparse,
)
from snnc.compiler.shapes import PortMap, port_map
from snnc.understanding.synops import APART, Measured, connections, counting, has_synapses, source_of


def rows(graph: Graph, measured: Measured | None = None) -> list[dict[str, Any]]:
    """Return the layer table as JSON's types; outputs are not in it."""
    ports = port_map(graph)
    order = dataflow_order(graph)
    return [_row(graph, ports, name, before, measured) for before, name in zip(["", *order], order, strict=False)]


def dataflow_order(graph: Graph) -> list[str]:
    """Sort all nodes but outputs so that what is read in the same step stands before its reader; ties stand as they were added."""
    rank = {name: number for number, name in enumerate(graph.names)}
    now: nx.DiGraph[str] = nx.DiGraph()
    now.add_nodes_from(graph.names)
    now.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    depth: dict[str, int] = {}
    for name in nx.topological_sort(now):
        depth[name] = 1 + max((depth[s] for s in now.predecessors(name)), default=-1)
    for name in reversed(list(nx.topological_sort(now))):  # what starts nothing but a late connection stands before its reader
        if not graph.incoming(name) or any(e.delay == 0 for e in graph.incoming(name)):
            continue
        depth[name] = min((depth[t] for t in now.successors(name)), default=1) - 1
    ordered = nx.lexicographical_topological_sort(now, key=lambda name: (depth[name], rank[name]))
    return [name for name in ordered if not isinstance(graph.operation(name), Output)]


def parameter_counts(operation: Operation) -> tuple[int, int]:
    """Count the numbers of an operation that are stored, and those of them that training may change."""
    if isinstance(operation, Population):
        sizes = {n: int(np.size(operation.parameters.get(n, default))) for n, default in operation.model.parameters.items()}
        return sum(sizes.values()), sum(sizes[n] for n in operation.learnable if n in sizes)
    weight = getattr(operation, "weight", None)
    bias = getattr(operation, "bias", None)
    total = sum(int(array.size) for array in (weight, bias) if array is not None)
    return total, total if getattr(operation, "learnable", False) else 0


def kind(operation: Operation) -> str:
    """Say what an operation is with the numbers that define it: ``conv 5x5 s2 p1, 1 to 12 channels, bias``."""
    match operation:
        case Input(kind=what):
            return f"input of {what}"
        case Population(model=model, shape=shape):
            return f"{model.name}, {math.prod(shape):,} neurons"
        case Linear(weight=weight):
            return _with_bias(f"dense {weight.shape[1]}x{weight.shape[0]}", operation)
        case Sparse(weight=weight, shape=shape):
            return _with_bias(f"sparse {shape[1]}x{shape[0]}, {weight.size:,} weights", operation)
        case Conv(weight=weight, groups=groups):
            windows = _windows(weight.shape[2:], operation.stride, operation.padding, operation.dilation, (1,) * (weight.ndim - 2))
            grouped = f" g{groups}" if groups > 1 else ""
            return _with_bias(f"conv {windows}{grouped}, {weight.shape[1] * groups} to {weight.shape[0]} channels", operation)
        case Pool(kind=what):
            return f"{what} pool {_windows(operation.kernel, operation.stride, operation.padding, operation.dilation, operation.kernel)}"
        case Scale():
            return _with_bias("scale", operation)
        case OneToOne(weight=weight):
            return "one to one" if weight is not None else "one to one, no weights"
        case Reduce(kind=what, axes=axes):
            return f"{what} over axes {', '.join(map(str, axes))}"
        case Slice(axis=axis, start=start, stop=stop):
            return f"slice {start}:{stop} of axis {axis}"
        case Concat(axis=axis):
            return f"concat, axis {axis}"
        case Pad(padding=padding):
            return f"pad {', '.join(f'{a}+{b}' for a, b in padding)}"
    return {Add: "add", Flatten: "flatten", Reshape: "reshape"}.get(type(operation), type(operation).__name__.lower())


def _with_bias(text: str, operation: Operation) -> str:
    return text if getattr(operation, "bias", None) is None else f"{text}, bias"


def _windows(
    kernel: Iterable[int], stride: tuple[int, ...], padding: tuple[tuple[int, int], ...], dilation: tuple[int, ...], usual: tuple[int, ...]
) -> str:
    found = ["x".join(map(str, kernel))]
    found += [f"s{_numbers(stride or usual)}"]
    if any(any(pair) for pair in padding):
        pairs = [str(a) if a == b else f"{a}+{b}" for a, b in padding]
        found.append(f"p{pairs[0] if len(set(pairs)) == 1 else 'x'.join(pairs)}")
    if any(d != 1 for d in dilation):
        found.append(f"d{_numbers(dilation)}")
    return " ".join(found)


def _numbers(values: tuple[int, ...]) -> str:
    return str(values[0]) if len(set(values)) == 1 else "x".join(map(str, values))


def _row(graph: Graph, ports: PortMap, name: str, above: str, measured: Measured | None) -> dict[str, Any]:
    operation = graph.operation(name)
    stored, learnable = parameter_counts(operation)
    port = operation.model.outputs[0] if isinstance(operation, Population) else "out"
    row: dict[str, Any] = {
        "name": name,
        "kind": kind(operation),
        "from": _sources(graph, name, above),
        "shape": list(ports[name, port].shape),
        "sends": ports[name, port].kind,
        "parameters": stored,
        "learnable": learnable,
        "synapses": 0,
    }
    if isinstance(operation, Population):
        row |= {"neuron": operation.model.name, "neurons": math.prod(operation.shape)}
    if has_synapses(operation) or isinstance(operation, APART):
        edge = source_of(graph, name)
        pairs = connections(name, operation, ports[edge.source, edge.source_port].shape)
        if has_synapses(operation):
            row |= {"synapses": pairs, "synops_at_most": pairs, "counted_as": counting(graph, ports, name)}
            row["zero_weights"] = _zeros(operation)
        else:
            row["other_operations"] = pairs
    if measured is not None and name in measured.operations:
        row["synops_measured"], row["measured_as"] = measured.operations[name]
    if measured is not None and name in measured.rates:
        row["rate"] = measured.rates[name]
    return row


def _zeros(operation: Operation) -> int:
    weight = getattr(operation, "weight", None)
    return 0 if weight is None else int(weight.size - np.count_nonzero(weight))


def _sources(graph: Graph, name: str, above: str) -> list[str]:
    """What a row reads, where it is not simply the row above in the same step: ``hidden.v[t-1]``."""
    edges = graph.incoming(name)
    if len(edges) == 1 and edges[0].source == above and not edges[0].delay and _is_default(graph, edges[0]):
        return []
    return [_source(graph, e) for e in edges]


def _is_default(graph: Graph, edge: Edge) -> bool:
    operation = graph.operation(edge.source)
    return not isinstance(operation, Population) or edge.source_port == operation.model.outputs[0]


def _source(graph: Graph, edge: Edge) -> str:
    port = "" if _is_default(graph, edge) else f".{edge.source_port}"
    target = graph.operation(edge.target)
    several = isinstance(target, Population) and len(target.model.inputs) > 1
    return f"{edge.source}{port}{f'[t-{edge.delay}]' if edge.delay else ''}{f' into {edge.target_port}' if several else ''}"
