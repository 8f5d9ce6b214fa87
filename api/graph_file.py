"""A graph as two files, so that a project folder needs no model file: structure as JSON, numbers as npz."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.expression import parse_assignments, parse_expression, to_text
from snnc.compiler.graph import Array, Graph, Layout, Operation, StateRef
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
    values = {f.name: _encode(getattr(operation, f.name), arrays) for f in fields(operation)}
    return {"is": type(operation).__name__, **values}


def _operation_from_data(data: Mapping[str, Any], arrays: Mapping[str, Array]) -> Operation:
    kinds: dict[str, Callable[..., Operation]] = {kind.__name__: kind for kind in get_args(Operation)}
    if data["is"] not in kinds:
        raise ProjectFolderError(f"the model holds the operation {data['is']!r}, which this version of snnc does not know.")
    values = {name: _decode(value, arrays) for name, value in data.items() if name not in ("is", "name")}
    return kinds[data["is"]](**values)


def _encode(value: object, arrays: dict[str, Array]) -> Any:
    match value:
        case np.ndarray() | np.generic():
            arrays[f"a{len(arrays)}"] = np.asarray(value)
            return {"array": f"a{len(arrays) - 1}"}
        case tuple():
            return [_encode(v, arrays) for v in value]
        case frozenset():
            return {"set": sorted(value)}
        case Layout():
            return {"layout": asdict(value)}
        case NeuronModel():
            return {"model": _model_to_data(value)}
        case Surrogate():
            return {"surrogate": surrogate_to_data(value)}
        case Mapping():
            return {"map": {name: _encode(v, arrays) for name, v in value.items()}}
        case _:
            return value


def _decode(data: Any, arrays: Mapping[str, Array]) -> Any:
    match data:
        case list():
            return tuple(_decode(v, arrays) for v in data)
        case {"array": name}:
            return arrays[name]
        case {"set": names}:
            return frozenset(names)
        case {"layout": axes}:
            return Layout(**axes)
        case {"model": model}:
            return _model_from_data(model)
        case {"surrogate": surrogate}:
            return surrogate_from_data(surrogate)
        case {"map": values}:
            return {name: _decode(v, arrays) for name, v in values.items()}
        case _:
            return data


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
