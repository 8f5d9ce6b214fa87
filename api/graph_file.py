"""A graph as two files, so that a project folder needs no model file: structure as JSON, numbers as npz."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.expression import parse_assignments, parse_expression, to_text
from snnc.compiler.graph import (
    Add,
    Array,
    Concat,
    Flatten,
    Graph,
    Input,
    Layout,
    Linear,
    OneToOne,
    Operation,
    Output,
    Population,
    StateRef,
)
from snnc.compiler.neuron import NeuronModel
from snnc.compiler.surrogate import Surrogate
from snnc.data import read_arrays, write_arrays
from snnc.errors import ProjectFolderError

VERSION = 1


def save_graph(graph: Graph, folder: Path) -> None:
    """Write ``graph.json`` and ``arrays.npz`` into `folder`."""
    arrays: dict[str, Array] = {}
    data = {
        "version": VERSION,
        "name": graph.name,
        "steps": graph.steps,
        "nodes": [{"name": name, **_operation_to_data(graph.operation(name), arrays)} for name in graph.names],
        "edges": [asdict(edge) for edge in graph.edges],
        "state_inputs": {name: asdict(ref) for name, ref in graph.state_inputs.items()},
        "assumptions": graph.assumptions,
    }
    (folder / "graph.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    write_arrays(folder / "arrays.npz", arrays)


def load_graph(folder: Path) -> Graph:
    """Read what :func:`save_graph` wrote.

    Raises
    ------
    ProjectFolderError
        The files are missing or damaged.
    """
    try:
        data = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ProjectFolderError(f"{str(folder)!r} was written by another snnc (format {data['version']}); compile the model again.")
        arrays = read_arrays(folder / "arrays.npz")
        graph = Graph(data["name"], data["steps"])
        for node in data["nodes"]:
            graph.add(node["name"], _operation_from_data(node, arrays))
        for edge in data["edges"]:
            ports = {key: edge[key] for key in ("source_port", "target_port", "delay")}
            graph.connect(edge["source"], edge["target"], **ports)
        graph.state_inputs = {name: StateRef(**ref) for name, ref in data["state_inputs"].items()}
        graph.assumptions = [str(a) for a in data["assumptions"]]
    except ProjectFolderError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SnncError) as error:
        raise ProjectFolderError(f"the model in {str(folder)!r} is damaged ({error}); compile it again.") from None
    return graph


def _operation_to_data(operation: Operation, arrays: dict[str, Array]) -> dict[str, Any]:
    def keep(array: Array | None) -> str | None:
        if array is None:
            return None
        arrays[f"a{len(arrays)}"] = np.asarray(array)
        return f"a{len(arrays) - 1}"

    match operation:
        case Input(shape, kind, layout):
            return {"is": "input", "shape": shape, "kind": kind, "layout": asdict(layout)}
        case Output(readout, layout):
            return {"is": "output", "readout": readout, "layout": asdict(layout)}
        case Linear(weight, bias, learnable):
            return {"is": "linear", "weight": keep(weight), "bias": keep(bias), "learnable": learnable}
        case OneToOne(weight, learnable):
            return {"is": "one_to_one", "weight": keep(weight), "learnable": learnable}
        case Concat(axis):
            return {"is": "concat", "axis": axis}
        case Population():
            return {
                "is": "population",
                "shape": operation.shape,
                "model": _model_to_data(operation.model),
                "parameters": {name: keep(value) for name, value in operation.parameters.items()},
                "learnable": sorted(operation.learnable),
                "initial": {name: keep(value) for name, value in operation.initial.items()},
                "surrogate": None if operation.surrogate is None else surrogate_to_data(operation.surrogate),
            }
        case Add():
            return {"is": "add"}
        case Flatten():
            return {"is": "flatten"}


def _operation_from_data(data: Mapping[str, Any], arrays: Mapping[str, Array]) -> Operation:
    def kept(name: str | None) -> Array | None:
        return None if name is None else arrays[name]

    match data["is"]:
        case "input":
            return Input(tuple(data["shape"]), data["kind"], Layout(**data["layout"]))
        case "output":
            return Output(data["readout"], Layout(**data["layout"]))
        case "linear":
            return Linear(arrays[data["weight"]], kept(data["bias"]), data["learnable"])
        case "one_to_one":
            return OneToOne(kept(data["weight"]), data["learnable"])
        case "concat":
            return Concat(data["axis"])
        case "add":
            return Add()
        case "flatten":
            return Flatten()
        case "population":
            return Population(
                _model_from_data(data["model"]),
                tuple(data["shape"]),
                {name: arrays[key] for name, key in data["parameters"].items()},
                frozenset(data["learnable"]),
                {name: arrays[key] for name, key in data["initial"].items()},
                None if data["surrogate"] is None else surrogate_from_data(data["surrogate"]),
            )
        case other:
            raise ProjectFolderError(f"the model holds the operation {other!r}, which this version of snnc does not know.")


def _model_to_data(model: NeuronModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "inputs": model.inputs,
        "states": dict(model.states),
        "parameters": dict(model.parameters),
        "equations": model.text,
        "outputs": model.outputs,
    }


def _model_from_data(data: Mapping[str, Any]) -> NeuronModel:
    equations = parse_assignments(data["equations"])
    return NeuronModel(data["name"], tuple(data["inputs"]), data["states"], data["parameters"], equations, tuple(data["outputs"]))


def surrogate_to_data(surrogate: Surrogate) -> dict[str, Any]:
    """Return `surrogate` as JSON's types."""
    return {"name": surrogate.name, "derivative": to_text(surrogate.derivative), "parameters": surrogate.parameters}


def surrogate_from_data(data: Mapping[str, Any]) -> Surrogate:
    """Undo :func:`surrogate_to_data`."""
    return Surrogate(data["name"], parse_expression(data["derivative"]), dict(data["parameters"]))
