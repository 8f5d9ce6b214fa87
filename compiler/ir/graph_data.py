"""Graphs as plain data: JSON types for the structure, and references to arrays. The caller decides where arrays are stored."""

from __future__ import annotations

from collections.abc import Callable, Sized
from itertools import pairwise
from typing import Any, Final, TypeAlias, get_args

import networkx as nx
import numpy as np

from snnc.compiler.errors import GraphDataError, SnncError
from snnc.compiler.ir.graph import Array, Edge, FileLayout, Graph, Idle, Operation, StateRef
from snnc.compiler.neurons.expression import parse_assignments
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.plain_data import (
    EQUATIONS,
    decoded,
    decoded_fields,
    encoded,
    encoded_fields,
    field_types,
    json_list,
    json_mapping,
    json_object,
    natural,
    text,
    wrong_value,
)
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

VERSION: Final = 2
"""Version of the format; other versions are refused."""
MAX_NODES: Final = 100_000
"""Maximum number of nodes, of models, of state inputs, of idle inputs, and of assumptions."""
MAX_NAMES: Final = 10_000
"""Maximum number of ports, states and parameters of all models together."""
MAX_EQUATIONS: Final = 1_000_000
"""Maximum number of characters of the equations of all models together."""
_EDGE: Final = ("source", "source_port", "target", "target_port", "delay")

StoreArray: TypeAlias = Callable[[str, str, Array], Any]
"""(node, field, array) -> reference to the stored array, as JSON types; the field of a parameter is ``"parameters.beta"``."""
FindArray: TypeAlias = Callable[[str, str, Any], Array]
"""(node, field, result of `StoreArray`) -> array."""


def graph_to_data(graph: Graph, store: StoreArray) -> dict[str, Any]:
    """Return `graph` as JSON types; each array is passed to `store`."""
    models: list[NeuronModel] = []

    def node(name: str) -> dict[str, Any]:
        """Return a node; its model is added to `models` if it is new, and stored as an index."""

        def convert(hint: Any, value: Any, at: str) -> Any:
            if hint == Array:
                return store(name, at, np.asarray(value))
            if hint is NeuronModel:
                if value not in models:
                    models.append(value)
                return models.index(value)
            return NotImplemented

        return {"name": name, **encoded(Operation, graph.operation(name), convert)}

    nodes = [node(name) for name in graph.names]
    return {
        "version": VERSION,
        "name": graph.name,
        "steps": graph.steps,
        "models": [encoded_fields(model) for model in models],
        "nodes": nodes,
        "edges": [[getattr(edge, key) for key in _EDGE] for edge in edges_in_order(graph)],
        "state_inputs": {name: encoded_fields(ref) for name, ref in graph.state_inputs.items()},
        "idle_inputs": dict(graph.idle_inputs),
        "assumptions": list(graph.assumptions),
    }


def graph_from_data(data: object, find: FindArray) -> Graph:
    """Return the graph from the result of :func:`graph_to_data`; `find` may raise GraphDataError. The graph is not verified.

    Invalid data raise a GraphDataError, which says where they are.
    """
    try:
        return _graph(data, find)
    except GraphDataError:
        raise
    except SnncError as error:
        raise GraphDataError(f"the description of the network is wrong: {error.text}") from None


def edges_in_order(graph: Graph) -> list[Edge]:
    """Return the edges in an order that preserves the order of each node's incoming and outgoing edges when they are added in turn.

    Incoming edges are summed in this order, which affects rounding.
    """
    ends: dict[tuple[str, str], list[Edge]] = {}
    for edge in graph.edges:
        ends.setdefault((edge.source, edge.target), []).append(edge)
    rank = {pair: number for number, pair in enumerate(ends)}
    after: nx.DiGraph[tuple[str, str]] = nx.DiGraph()
    after.add_nodes_from(ends)
    for name in graph.names:
        out_of = list(dict.fromkeys((name, e.target) for e in graph.outgoing(name)))
        into = list(dict.fromkeys((e.source, name) for e in graph.incoming(name)))
        for row in (out_of, into):
            after.add_edges_from(pairwise(row))
    return [edge for pair in nx.lexicographical_topological_sort(after, key=rank.__getitem__) for edge in ends[pair]]


def surrogate_to_data(surrogate: Surrogate) -> dict[str, Any]:
    """Return `surrogate` as JSON types."""
    return encoded_fields(surrogate)


def surrogate_from_data(data: object) -> Surrogate:
    """Return the surrogate from the result of :func:`surrogate_to_data`; invalid data raise an SnncError."""
    surrogate: Surrogate = decoded_fields(Surrogate, data, "the surrogate")
    return surrogate


def _graph(data: object, find: FindArray) -> Graph:
    """Return the graph from data that were not checked before."""
    keys = ("version", "name", "steps", "models", "nodes", "edges", "state_inputs", "idle_inputs", "assumptions")
    if isinstance(data, dict) and data.get("version") != VERSION:
        raise GraphDataError(f"a different version of snnc wrote it (format {str(data.get('version'))[:20]}; this one reads {VERSION}).")
    network = json_object(data, "the network", keys)
    models = _models(json_list(network["models"], "models", MAX_NODES))
    graph = Graph(text(network["name"], "name"), None if network["steps"] is None else natural(network["steps"], "steps"))
    for k, node in enumerate(json_list(network["nodes"], "nodes", MAX_NODES)):
        name = text(node.get("name") if isinstance(node, dict) else None, f"the name of node {k}")
        graph.add(name, _operation(node, name, models, find))
    for k, row in enumerate(json_list(network["edges"], "edges")):
        values = json_list(row, f"edge {k}")
        if len(values) != len(_EDGE):
            raise wrong_value(f"edge {k}", f"[{', '.join(_EDGE)}]", row)
        source, source_port, target, target_port = (text(v, f"{key} of edge {k}") for key, v in zip(_EDGE, values[:-1], strict=False))
        graph.connect(source, target, source_port=source_port, target_port=target_port, delay=natural(values[-1], f"delay of edge {k}"))
    for name, ref in json_mapping(network["state_inputs"], "state_inputs", MAX_NODES).items():
        graph.state_inputs[name] = decoded_fields(StateRef, ref, f"state input {name!r}")
    for name, kind in json_mapping(network["idle_inputs"], "idle_inputs", MAX_NODES).items():
        graph.idle_inputs[name] = decoded(Idle, kind, f"idle input {name!r}")
    graph.assumptions = [text(a, "an assumption") for a in json_list(network["assumptions"], "assumptions", MAX_NODES)]
    return graph


def _models(rows: list[Any]) -> list[NeuronModel]:
    def with_equations(hint: Any, value: Any, at: str) -> Any:
        return parse_assignments(text(value, at)) if hint == EQUATIONS else NotImplemented

    models, characters_left, names_left = [], MAX_EQUATIONS, MAX_NAMES
    for k, row in enumerate(rows):
        values = json_object(row, f"model {k}", field_types(NeuronModel))
        lengths = {key: len(value) for key, value in values.items() if isinstance(value, Sized)}
        characters_left -= lengths.get("equations", 0)
        names_left -= sum(lengths.get(key, 0) for key in ("inputs", "states", "parameters", "outputs"))
        if characters_left < 0 or names_left < 0:
            raise GraphDataError(
                f"the equations of all neurons are longer than {MAX_EQUATIONS:,} characters, or have more than {MAX_NAMES:,} names."
            )
        models.append(decoded_fields(NeuronModel, row, f"model {k}", with_equations))
    return models


def _operation(data: Any, name: str, models: list[NeuronModel], find: FindArray) -> Operation:
    kinds: dict[str, Any] = {kind.__name__: kind for kind in get_args(Operation)}
    is_ = data.get("is")
    if not isinstance(is_, str) or is_ not in kinds:
        raise GraphDataError(f"{name!r} is the operation {str(is_)[:60]!r}, which this version of snnc does not support.")

    def where(at: str) -> str:
        return f"{at} of {name!r}" if at else repr(name)

    def convert(hint: Any, value: Any, at: str) -> Any:
        if hint is NeuronModel:
            number = natural(value, where(at))
            if number >= len(models):
                raise wrong_value(where(at), f"the number of one of {len(models)} models", value)
            return models[number]
        if hint == Array:
            array = find(name, at, value)
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
                raise wrong_value(where(at), "an array of numbers", array)
            return array
        if hint is FileLayout:
            axes = json_object(value, where(at), field_types(FileLayout))
            return FileLayout(**{key: None if axis is None else natural(axis, where(at)) for key, axis in axes.items()})
        return NotImplemented

    rest = {key: value for key, value in data.items() if key not in ("name", "is")}
    operation: Operation = decoded_fields(kinds[is_], rest, "", convert, where)
    return operation
