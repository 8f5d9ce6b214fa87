"""Describe a model as data: layers, neurons, connections, synaptic operations and assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import networkx as nx
import numpy as np

from snnc.compiler.ir.dataflow_order import in_dataflow_order
from snnc.compiler.ir.graph import WEIGHTED, Array, Conv, Graph, Input, Linear, OneToOne, Operation, Output, Pool, Population, Scale, Sparse
from snnc.compiler.ir.operation_text import parameter_counts
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.understanding.equations import parameter_values, range_text, readable
from snnc.understanding.layers import rows
from snnc.understanding.neurobench import neurobench
from snnc.understanding.resets import FiringDescription, firing
from snnc.understanding.statements import statements
from snnc.understanding.synops import MeasuredSynops

KINDS: Final[Mapping[type, str]] = {
    Linear: "dense",
    Sparse: "sparse",
    Conv: "convolution",
    Pool: "pooling",
    Scale: "scale",
    OneToOne: "one to one",
}
"""Kinds of connections by type of operation; :func:`describe` lists connections of these types only."""
COUNTINGS: Final = ("AC", "MAC")
"""Kinds of synaptic operations: an AC (accumulate) only adds, a MAC multiplies and adds."""


def describe(graph: Graph, *, measured: MeasuredSynops | None = None, surrogate: Surrogate | None = None) -> dict[str, Any]:
    """Return layers, neurons with their equations and parameters, synaptic operations, recurrences and assumptions as JSON types.

    `measured` is the result of :func:`~snnc.checks.measure.measure`, and `surrogate` the one chosen as a compile option, if any.
    """
    graph = in_dataflow_order(graph)
    table = rows(graph, measured)
    firings = {name: firing(population) for name, population in graph.of_type(Population)}
    return {
        "name": graph.name,
        "steps": graph.steps,
        "parameters": count_parameters(graph),
        "inputs": [
            {"name": n, "shape": list(o.shape), "kind": o.kind, "time_axis": o.layout.time_axis, "batch_axis": o.layout.batch_axis}
            for n, o in graph.of_type(Input)
        ],
        "layers": [_population(graph, name, operation) for name, operation in graph.of_type(Population)],
        "table": table,
        "synops": _synops(graph, table, measured),
        "neurobench": neurobench(graph, measured),
        "neurons": _distinct_neurons(graph, firings),
        "connections": [_connection(graph, name, operation) for name, operation in graph.of_type(*KINDS)],
        "recurrences": recurrences(graph),
        "states": {name: f"{ref.node}.{ref.name}" for name, ref in graph.state_inputs.items()},
        "outputs": [
            {"name": n, "of": [f"{e.source}.{e.source_port}" for e in graph.incoming(n)]}
            | {field: getattr(o, field) for field in ("readout", "start", "stop")}
            for n, o in graph.of_type(Output)
        ],
        "statements": statements(graph, firings, surrogate),
        "assumptions": list(graph.assumptions),
    }


def recurrences(graph: Graph) -> list[dict[str, Any]]:
    """Return the groups of populations that feed each other or themselves, with the delays above 0 of the connections in each group."""
    groups = []
    for members in nx.strongly_connected_components(graph.nx):
        inner = [e for e in graph.edges if e.source in members and e.target in members]
        if inner:
            names = [n for n in graph.names if n in members and isinstance(graph.operation(n), Population)]
            groups.append({"populations": names, "delays": sorted({e.delay for e in inner if e.delay})})
    return groups


def count_parameters(graph: Graph) -> int:
    """Return the number of weights, biases and learnable neuron parameters."""
    counts = [(*parameter_counts(operation), isinstance(operation, Population)) for _, operation in graph.of_type(*WEIGHTED, Population)]
    return sum(learnable if of_neurons else stored for stored, learnable, of_neurons in counts)


def _synops(graph: Graph, table: list[dict[str, Any]], measured: MeasuredSynops | None) -> dict[str, Any]:
    """Return synaptic operations per step and sample: "at_most" if all sources fire, "measured" on data; "graded_inputs" send values."""
    synaptic = [row for row in table if "synops_at_most" in row]
    inputs = {name for name, operation in graph.of_type(Input) if operation.kind == "values"}
    return {
        "at_most": {c: sum(row["synops_at_most"] for row in synaptic if row["counted_as"] == c) for c in COUNTINGS},
        "measured": None
        if measured is None
        else {
            **{name: getattr(measured, name) for name in ("source", "samples", "steps")},
            **{c: float(sum(row["synops_measured"] for row in synaptic if row["measured_as"] == c)) for c in COUNTINGS},
        },
        "other_operations": sum(row.get("other_operations", 0) for row in table),
        "graded_inputs": sorted(inputs & {e.source for row in synaptic for e in graph.incoming(row["name"])}),
        "zero_weights": sum(row["zero_weights"] for row in synaptic),
    }


def _population(graph: Graph, name: str, operation: Population) -> dict[str, Any]:
    looped = {n for group in recurrences(graph) for n in group["populations"]}
    values = {n: _summary(operation.parameters.get(n, np.float64(v))) for n, v in operation.model.parameters.items()}
    return {
        "name": name,
        "neuron": operation.model.name,
        "shape": list(operation.shape),
        "neurons": int(np.prod(operation.shape)),
        "inputs": list(operation.model.inputs),
        "states": {n: _summary(operation.initial.get(n, np.float64(v))) for n, v in operation.model.states.items()},
        "equations": operation.model.text.splitlines(),
        "parameters": values,
        "learnable": sorted(operation.learnable),
        "recurrent": name in looped,
        "surrogate": None if operation.surrogate is None else str(operation.surrogate),
    }


def _connection(graph: Graph, name: str, operation: Operation) -> dict[str, Any]:
    weight = getattr(operation, "weight", None)
    return {
        "name": name,
        "kind": KINDS[type(operation)],
        "from": [e.source for e in graph.incoming(name)],
        "to": [e.target for e in graph.outgoing(name)],
        "weight": None if weight is None else list(operation.shape if isinstance(operation, Sparse) else weight.shape),
        "bias": getattr(operation, "bias", None) is not None,
        "delay": max((e.delay for e in (*graph.incoming(name), *graph.outgoing(name))), default=0),
    }


def _summary(value: Array | np.float64) -> float | dict[str, Any]:
    array = np.asarray(value, dtype=np.float64)
    if array.size and (array == array.flat[0]).all():
        return _short(array.flat[0])
    return {"shape": list(array.shape), "least": _short(array.min()), "mean": _short(array.mean()), "most": _short(array.max())}


def _short(value: float) -> float:
    return float(f"{value:.7g}")


def _distinct_neurons(graph: Graph, firings: Mapping[str, FiringDescription]) -> list[dict[str, Any]]:
    distinct: dict[Any, dict[str, Any]] = {}
    for name, population in graph.of_type(Population):
        about = firings[name]
        entry: dict[str, Any] = {"neuron": population.model.name, "populations": [], "equations": readable(population)}
        entry |= {"with": _parameter_texts(population), "fires": about.fires, "reset": about.reset, "reset_gradient": about.gradient}
        key = repr({k: v for k, v in entry.items() if k != "populations"})
        distinct.setdefault(key, entry)["populations"].append(name)
    return list(distinct.values())


def _parameter_texts(population: Population) -> list[str]:
    texts = []
    for name, value in parameter_values(population).items():
        learned = " (learned)" if name in population.learnable else ""
        texts.append(f"{name} = {range_text(value)}{'' if isinstance(value, float) else ', one per neuron'}{learned}")
    return texts
