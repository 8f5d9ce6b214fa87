"""Graphs as plain data: JSON types for the structure, and references to arrays. The caller decides where arrays are stored.

Data are not trusted: every value is checked against the type of its field, and an unknown or missing field is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, fields
from functools import cache, partial
from itertools import pairwise
from types import NoneType
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

import networkx as nx
import numpy as np

from snnc.compiler.errors import GraphDataError, SnncError
from snnc.compiler.ir.graph import Array, Edge, FileLayout, Graph, Idle, Operation, StateRef
from snnc.compiler.neurons.expression import parse_assignments, parse_expression, to_text
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

VERSION: Final = 2
"""Version of the format; other versions are refused."""
MAX_NODES: Final = 100_000
"""Maximum number of nodes, and of entries of most other lists and objects."""
MAX_EDGES: Final = 1_000_000
MAX_NAMES: Final = 10_000
"""Maximum number of ports, states and parameters of all models together."""
MAX_EQUATIONS: Final = 1_000_000
"""Maximum number of characters of the equations of all models together."""
_LARGEST: Final = 2**31
"""Magnitude that whole numbers must be below."""
_EDGE: Final = ("source", "source_port", "target", "target_port", "delay")

StoreArray: TypeAlias = Callable[[str, str, Array], Any]
"""(node, field, array) -> reference to the stored array, as JSON types; the field of a parameter is ``"parameters.beta"``."""
FindArray: TypeAlias = Callable[[str, str, Any], Array]
"""(node, field, result of `StoreArray`) -> array."""
_StoreField: TypeAlias = Callable[[str, Array], Any]


def graph_to_data(graph: Graph, store: StoreArray) -> dict[str, Any]:
    """Return `graph` as JSON types; each array is passed to `store`."""
    models: list[NeuronModel] = []
    nodes = [{"name": n, **_operation_to_data(graph.operation(n), partial(store, n), models)} for n in graph.names]
    return {
        "version": VERSION,
        "name": graph.name,
        "steps": graph.steps,
        "models": [_model_to_data(model) for model in models],
        "nodes": nodes,
        "edges": [[getattr(edge, key) for key in _EDGE] for edge in edges_in_order(graph)],
        "state_inputs": {name: asdict(ref) for name, ref in graph.state_inputs.items()},
        "idle_inputs": dict(graph.idle_inputs),
        "assumptions": list(graph.assumptions),
    }


def graph_from_data(data: object, find: FindArray) -> Graph:
    """Return the graph from the result of :func:`graph_to_data`; `find` may raise GraphDataError. The graph is not verified.

    Raises
    ------
    GraphDataError
        The data are invalid; the message says where.
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
    return {"name": surrogate.name, "derivative": to_text(surrogate.derivative), "parameters": dict(surrogate.parameters)}


def surrogate_from_data(data: object) -> Surrogate:
    """Return the surrogate from the result of :func:`surrogate_to_data`.

    Raises
    ------
    SnncError
        The data are invalid.
    """
    values = json_object(data, "the surrogate", ("name", "derivative", "parameters"))
    parameters = _numbers(values["parameters"], "the parameters of the surrogate")
    return Surrogate(_text(values["name"], "its name"), parse_expression(_text(values["derivative"], "its derivative")), parameters)


# ---- writing ---------------------------------------------------------------------------------------------------------


def _operation_to_data(operation: Operation, store: _StoreField, models: list[NeuronModel]) -> dict[str, Any]:
    """Return an operation as JSON types; its model is added to `models` if it is new, and stored as an index."""

    def encode(hint: Any, value: Any, at: str) -> Any:
        origin, args = get_origin(hint), get_args(hint)
        if value is None:
            return None
        if NoneType in args:
            (inner,) = (a for a in args if a is not NoneType)
            return encode(inner, value, at)
        if hint == Array:
            return store(at, np.asarray(value))
        if origin is tuple:
            hints = [args[0]] * len(value) if args[-1] is ... else args
            return [encode(h, v, f"{at}.{k}") for k, (h, v) in enumerate(zip(hints, value, strict=True))]
        if isinstance(value, Mapping):
            return {name: encode(args[1], v, f"{at}.{name}") for name, v in value.items()}
        if hint is NeuronModel:
            if value not in models:
                models.append(value)
            return models.index(value)
        return _plain(value)

    return {
        "is": type(operation).__name__,
        **{name: encode(hint, getattr(operation, name), name) for name, hint in field_types(type(operation)).items()},
    }


def _plain(value: object) -> Any:
    """Return a value as JSON types."""
    match value:
        case frozenset():
            return sorted(value)
        case FileLayout():
            return {key: None if axis is None else int(axis) for key, axis in asdict(value).items()}
        case Surrogate():
            return surrogate_to_data(value)
        case np.generic():
            return value.item()
        case _:
            return value


def _model_to_data(model: NeuronModel) -> dict[str, Any]:
    """Return a model as JSON types, with its equations as text."""
    return {
        "name": model.name,
        "inputs": list(model.inputs),
        "states": dict(model.states),
        "parameters": dict(model.parameters),
        "equations": model.text,
        "outputs": list(model.outputs),
    }


# ---- reading ---------------------------------------------------------------------------------------------------------


def _graph(data: object, find: FindArray) -> Graph:
    """Return the graph from data that were not checked before."""
    keys = ("version", "name", "steps", "models", "nodes", "edges", "state_inputs", "idle_inputs", "assumptions")
    if isinstance(data, dict) and data.get("version") != VERSION:
        raise GraphDataError(f"a different version of snnc wrote it (format {str(data.get('version'))[:20]}; this one reads {VERSION}).")
    network = json_object(data, "the network", keys)
    models = _models(json_list(network["models"], "models", MAX_NODES))
    graph = Graph(_text(network["name"], "name"), None if network["steps"] is None else _integer(network["steps"], "steps"))
    for k, node in enumerate(json_list(network["nodes"], "nodes", MAX_NODES)):
        name = _text(node.get("name") if isinstance(node, dict) else None, f"the name of node {k}")
        graph.add(name, _operation(node, name, models, find))
    for k, row in enumerate(json_list(network["edges"], "edges", MAX_EDGES)):
        values = json_list(row, f"edge {k}", len(_EDGE))
        if len(values) != len(_EDGE):
            raise wrong_value(f"edge {k}", f"[{', '.join(_EDGE)}]", row)
        source, source_port, target, target_port = (_text(v, f"{key} of edge {k}") for key, v in zip(_EDGE, values[:-1], strict=False))
        graph.connect(source, target, source_port=source_port, target_port=target_port, delay=_integer(values[-1], f"delay of edge {k}"))
    for name, ref in _mapping(network["state_inputs"], "state_inputs").items():
        ends = json_object(ref, f"state input {name!r}", ("node", "name"))
        graph.state_inputs[name] = StateRef(_text(ends["node"], "its node"), _text(ends["name"], "its name"))
    for name, kind in _mapping(network["idle_inputs"], "idle_inputs").items():
        if kind not in get_args(Idle):
            raise wrong_value(f"idle input {name!r}", f"one of {', '.join(get_args(Idle))}", kind)
        graph.idle_inputs[name] = kind
    graph.assumptions = [_text(a, "an assumption") for a in json_list(network["assumptions"], "assumptions", MAX_NODES)]
    return graph


def _models(rows: list[Any]) -> list[NeuronModel]:
    """Return the models, within the limits on the length of their equations and the number of their names."""
    models, characters_left, names_left = [], MAX_EQUATIONS, MAX_NAMES
    for k, row in enumerate(rows):
        at = f"model {k}"
        values = json_object(row, at, ("name", "inputs", "states", "parameters", "equations", "outputs"))
        equations = _text(values["equations"], f"equations of {at}")
        inputs, outputs = (
            tuple(_text(v, f"{key} of {at}") for v in json_list(values[key], key, MAX_NODES)) for key in ("inputs", "outputs")
        )
        states, parameters = (_numbers(values[key], f"{key} of {at}") for key in ("states", "parameters"))
        characters_left, names_left = characters_left - len(equations), names_left - sum(map(len, (inputs, outputs, states, parameters)))
        if characters_left < 0 or names_left < 0:
            raise GraphDataError(
                f"the equations of all neurons are longer than {MAX_EQUATIONS:,} characters, or have more than {MAX_NAMES:,} names."
            )
        models.append(NeuronModel(_text(values["name"], at), inputs, states, parameters, parse_assignments(equations), outputs))
    return models


def _operation(data: Any, name: str, models: list[NeuronModel], find: FindArray) -> Operation:
    """Return the operation of node `name`."""
    kinds: dict[str, Any] = {kind.__name__: kind for kind in get_args(Operation)}
    is_ = data.get("is")
    if not isinstance(is_, str) or is_ not in kinds:
        raise GraphDataError(f"{name!r} is the operation {str(is_)[:60]!r}, which this version of snnc does not support.")
    hints = field_types(kinds[is_])
    json_object(data, repr(name), ("name", "is", *hints))

    def decode(hint: Any, value: Any, at: str) -> Any:
        where = f"{at} of {name!r}"
        if hint is NeuronModel:
            number = _integer(value, where)
            if number >= len(models):
                raise wrong_value(where, f"the number of one of {len(models)} models", value)
            return models[number]
        if hint == Array:
            return _array(find(name, at, value), where)
        return decoded(hint, value, at, where, decode)

    operation: Operation = kinds[is_](**{field: decode(hint, data[field], field) for field, hint in hints.items()})
    return operation


def field_types(kind: Any) -> Mapping[str, Any]:
    """Return the types of the fields of `kind`; NumPy's array alias is not resolved, because its definition differs between versions."""
    return _field_types(kind)


@cache
def _field_types(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _array(value: Array, where: str) -> Array:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        raise wrong_value(where, "an array of numbers", value)
    return value


def decoded(hint: Any, value: Any, at: str, where: str, decode: Callable[[Any, Any, str], Any]) -> Any:
    """Return `value` as the declared type of a field of an operation."""
    origin, args = get_origin(hint), get_args(hint)
    if NoneType in args:
        (inner,) = (a for a in args if a is not NoneType)
        return None if value is None else decode(inner, value, at)
    if origin is Literal:
        if not isinstance(value, str) or value not in args:
            raise wrong_value(where, f"one of {', '.join(map(str, args))}", value)
        return value
    if origin is tuple:
        rows = json_list(value, where, MAX_NODES)
        hints = [args[0]] * len(rows) if args[-1] is ... else list(args)
        if len(hints) != len(rows):
            raise wrong_value(where, f"{len(hints)} values", value)
        return tuple(decode(h, v, f"{at}.{k}") for k, (h, v) in enumerate(zip(hints, rows, strict=True)))
    if origin is frozenset:
        return frozenset(_text(v, where) for v in json_list(value, where, MAX_NODES))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: decode(args[1], v, f"{at}.{name}") for name, v in _mapping(value, where).items()}
    if hint is FileLayout:
        axes = json_object(value, where, ("time_axis", "batch_axis"))
        return FileLayout(**{key: None if v is None else _integer(v, where) for key, v in axes.items()})
    if hint is Surrogate:
        return surrogate_from_data(value)
    plain: dict[Any, Callable[[Any, str], Any]] = {bool: _truth, int: _signed, float: _number, str: _text}
    return plain[hint](value, where)


def wrong_value(where: str, wanted: str, value: object) -> GraphDataError:
    """Return the error for a value of the wrong type."""
    return GraphDataError(f"the description of the network is wrong: {where} must be {wanted}, but is {repr(value)[:80]}.")


def json_object(value: object, where: str, keys: Collection[str]) -> dict[str, Any]:
    """Return `value` if it is an object with exactly these keys, else raise a GraphDataError."""
    data = _mapping(value, where)
    if set(data) != set(keys):
        missing, unknown = sorted(set(keys) - set(data)), sorted(set(data) - set(keys))
        what = f"lacks {', '.join(missing)}" if missing else f"contains the unknown {unknown[0][:60]!r}"
        raise GraphDataError(f"the description of the network is wrong: {where} {what}.")
    return data


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > MAX_NODES:
        raise wrong_value(where, f"an object of at most {MAX_NODES:,} entries", value)
    return value


def json_list(value: object, where: str, longest: int) -> list[Any]:
    """Return `value` if it is a list of at most `longest` elements, else raise a GraphDataError."""
    if not isinstance(value, list) or len(value) > longest:
        raise wrong_value(where, f"a list of at most {longest:,} entries", value)
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not _is_unicode(value):
        raise wrong_value(where, "text", value)
    return value


def _is_unicode(text: str) -> bool:
    """Return whether `text` can be encoded: JSON may contain unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _truth(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise wrong_value(where, "true or false", value)
    return value


def _integer(value: object, where: str) -> int:
    number = _signed(value, where)
    if number < 0:
        raise wrong_value(where, "0 or more", value)
    return number


def _signed(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _LARGEST:
        raise wrong_value(where, f"a whole number below {_LARGEST:,}", value)
    return value


def _number(value: object, where: str) -> float:
    """Return `value` if it is a finite number, else raise a GraphDataError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
        raise wrong_value(where, "a finite number", value)
    try:
        return float(value)
    except OverflowError:
        raise wrong_value(where, "a finite number", value) from None


def _numbers(value: object, where: str) -> dict[str, float]:
    return {name: _number(v, f"{name!r} of {where}") for name, v in _mapping(value, where).items()}
