"""What a front end understood of a model, as data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import networkx as nx
import numpy as np

from snnc.compiler.graph import Array, Conv, Graph, Input, Linear, OneToOne, Operation, Output, Pool, Population, Scale

KINDS: Final[Mapping[type, str]] = {Linear: "dense", Conv: "convolution", Pool: "pooling", Scale: "scale", OneToOne: "one to one"}
"""Operations between populations, as reports call them."""


def describe(graph: Graph) -> dict[str, Any]:
    """Return layers, neurons with their equations and parameters, recurrences and assumptions as JSON's types."""
    return {
        "name": graph.name,
        "steps": graph.steps,
        "parameters": count_parameters(graph),
        "inputs": [
            {"name": n, "shape": list(o.shape), "kind": o.kind, "time_axis": o.layout.time_axis, "batch_axis": o.layout.batch_axis}
            for n, o in graph.of_type(Input)
        ],
        "layers": [_population(graph, name, operation) for name, operation in graph.of_type(Population)],
        "connections": [_connection(graph, name, operation) for name, operation in graph.of_type(*KINDS)],
        "recurrences": recurrences(graph),
        "states": {name: f"{ref.node}.{ref.name}" for name, ref in graph.state_inputs.items()},
        "outputs": [
            {"name": n, "of": [f"{e.source}.{e.source_port}" for e in graph.incoming(n)], "readout": o.readout}
            for n, o in graph.of_type(Output)
        ],
        "assumptions": list(graph.assumptions),
    }


def recurrences(graph: Graph) -> list[dict[str, Any]]:
    """Groups of populations that feed each other (or themselves), with the delays of the connections among them."""
    found = []
    for members in nx.strongly_connected_components(graph.nx):
        inner = [e for e in graph.edges if e.source in members and e.target in members]
        if inner:
            names = [n for n in graph.names if n in members and isinstance(graph.operation(n), Population)]
            found.append({"populations": names, "delays": sorted({e.delay for e in inner if e.delay})})
    return found


def count_parameters(graph: Graph) -> int:
    """Numbers that training could change: weights, biases and learnable neuron parameters."""
    total = 0
    for _, operation in graph.of_type(Linear, Conv, Scale, OneToOne, Population):
        if isinstance(operation, Population):
            total += sum(int(np.size(operation.parameters.get(name, 0.0))) for name in operation.learnable)
        elif operation.weight is not None:
            bias = getattr(operation, "bias", None)
            total += operation.weight.size + (0 if bias is None else bias.size)
    return total


def to_text(found: dict[str, Any]) -> list[str]:
    """Print :func:`describe` for a reader, a line each."""
    steps = "any number of steps" if found["steps"] is None else f"{found['steps']} steps"
    lines = [f"{found['name']}: {len(found['layers'])} layers of neurons, {steps}, {found['parameters']:,} parameters"]
    lines += [f"  input  {i['name']}: {_shape(i['shape'])} {i['kind']}" for i in found["inputs"]]
    for layer in found["layers"]:
        lines.append(f"  layer  {layer['name']}: {_shape(layer['shape'])} {layer['neuron']}{'  (recurrent)' if layer['recurrent'] else ''}")
        lines += [f"           {line}" for line in layer["equations"]]
        values = ", ".join(f"{name} = {_value(value)}" for name, value in layer["parameters"].items())
        lines += [f"           with {values}"] if values else []
    lines += [f"  output {o['name']}: {', '.join(o['of'])}, {o['readout']}" for o in found["outputs"]]
    lines += [f"  state  {name}: {where}" for name, where in found["states"].items()]
    return lines + [f"  note   {text}" for text in found["assumptions"]]


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
        "weight": None if weight is None else list(weight.shape),
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


def _shape(shape: list[int]) -> str:
    return " x ".join(map(str, shape))


def _value(value: float | dict[str, Any]) -> str:
    return f"{value['least']:g} … {value['most']:g}" if isinstance(value, dict) else f"{value:g}"
