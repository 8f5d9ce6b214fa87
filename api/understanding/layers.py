"""The layer table: one row per operation of a graph, in dataflow order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snnc.compiler.ir.dataflow_order import dataflow_order
from snnc.compiler.ir.graph import Edge, Graph, Operation, Population
from snnc.compiler.ir.operation_text import description, parameter_counts
from snnc.compiler.ir.shapes import PortMap, port_map
from snnc.understanding.synops import APART, MeasuredSynops, connections, counting, has_synapses, source_of


def rows(graph: Graph, measured: MeasuredSynops | None = None) -> list[dict[str, Any]]:
    """Return the layer table as JSON types, without outputs."""
    ports = port_map(graph)
    order = dataflow_order(graph)
    return [_row(graph, ports, name, before, measured) for before, name in zip(["", *order], order, strict=False)]


def _row(graph: Graph, ports: PortMap, name: str, above: str, measured: MeasuredSynops | None) -> dict[str, Any]:
    operation = graph.operation(name)
    stored, learnable = parameter_counts(operation)
    port = operation.model.outputs[0] if isinstance(operation, Population) else "out"
    row: dict[str, Any] = {
        "name": name,
        "kind": description(operation),
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
    """Return the sources of a row, such as ``hidden.v[t-1]``; empty if the only source is the row above in the same step."""
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
