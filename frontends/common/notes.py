"""Write and read the description of a graph: JSON in the metadata of a model file, from which snnc restores the graph exactly.

A description is not trusted: the frontend that reads it compares the described graph with the file's own nodes.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.errors import GraphDataError
from snnc.compiler.ir.arrays.sparse import check_pattern, nonzeros_of
from snnc.compiler.ir.graph import Array, Conv, Graph, Operation, Pool, Population, Sparse
from snnc.compiler.ir.graph_data import graph_from_data, graph_to_data
from snnc.compiler.passes.edit import replace_operation

FindArray: TypeAlias = Callable[[Any], Array | None]

KEY: Final = "snnc"
"""Metadata key of the description."""
_LONGEST: Final = 1 << 24
"""Maximum number of characters of a description."""
_NODES: Final = 2_048
_EDGES: Final = 4_096
_INCOMING: Final = 1_024
_WINDOW: Final = 65_536
"""Maximum numbers of nodes, edges and edges into one node, and maximum stride, dilation, padding and kernel size.

They bound the time for checking a graph."""
_TYPES: Final = ("float32", "float64", "int32", "int64", "bool")
"""Element types of arrays in a description."""


def _parsed(text: object) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise GraphDataError(f"the description is not a text of at most {_LONGEST:,} characters.")
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise GraphDataError(f"the description is not JSON ({str(error)[:80]}).") from None
    if not isinstance(data, dict):
        raise GraphDataError(f"the description is a JSON {type(data).__name__}, not an object.")
    return data


def _array_to_data(array: Array) -> dict[str, Any]:
    plain = array if array.dtype.name in _TYPES else array.astype(np.float32)
    little = np.ascontiguousarray(plain.astype(plain.dtype.newbyteorder("<"), copy=False))
    return {"type": plain.dtype.name, "shape": list(plain.shape), "base64": base64.b64encode(little.tobytes()).decode("ascii")}


def _array_from_data(data: object) -> Array:
    match data:
        case {"type": str(kind), "shape": list(shape), "base64": str(text), **rest} if kind in _TYPES and not rest:
            dtype = np.dtype(kind).newbyteorder("<")
            try:
                content = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                raise GraphDataError("an array of the description is not base64.") from None
            sizes = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape)
            if not sizes or math.prod(shape) * dtype.itemsize != len(content) or len(shape) > 32:
                raise GraphDataError(
                    f"an array of the description has {len(content):,} bytes, which do not fit its shape {str(shape)[:60]}."
                )
            return np.frombuffer(content, dtype).astype(np.dtype(kind)).reshape(shape)
    raise GraphDataError("an array of the description is neither in the file nor in the description itself.")


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a JSON number")


@dataclass(frozen=True, eq=False)
class Description:
    """A graph and its relation to a model file."""

    graph: Graph
    values: Mapping[str, Mapping[str, str]]
    """Name of a tensor in an ONNX file, by node and port of `graph`; in a NIR file, name of a node, with the port ``""``."""
    structure: str  # digest of everything in the file except its arrays


def describe(
    graph: Graph, find_place: Callable[[str, str], Any], find_array: FindArray, values: Mapping[str, Mapping[str, str]], structure: str = ""
) -> str | None:
    """Return the description of `graph` as JSON, or None if it would be too long to read.

    The description also records where the file stores parameters that have their model's default value, because another tool may change
    them in the file.

    `find_place` returns the place in the file of an array (node, field), as any JSON type except an object; None if it is not in the file.
    `find_array` returns the array at a place, as a reader of the file finds it, or None. For `values` and `structure` see
    :class:`Description`.
    """

    def stored(node: str, field: str, array: Array) -> Any:
        place = find_place(node, field)
        current = None if place is None else find_array(place)
        if current is None:
            return _array_to_data(array)
        operation = graph.operation(node)
        if isinstance(operation, Sparse) and field == "weight" and current.shape == operation.shape:
            current = nonzeros_of(current, operation)
        same = current.shape == array.shape and np.array_equal(current.astype(np.float32), array.astype(np.float32))
        return place if same else _array_to_data(array)

    data = graph_to_data(graph, stored) | {"values": values, "structure": structure, "defaults": {}}
    for name, population in graph.of_type(Population):
        places = {}
        for parameter, default in population.model.parameters.items():
            place = None if parameter in population.parameters else find_place(name, f"parameters.{parameter}")
            if place is not None and (array := find_array(place)) is not None and np.array_equal(array, np.float32(default)):
                places[parameter] = place
        if places:
            data["defaults"][name] = places
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text if len(text) <= _LONGEST else None


def read_description(text: object, find_array: FindArray) -> Description:
    """Reverse :func:`describe`, with the file's current arrays. The graph is not verified.

    Raise SnncError if the text is not a description, or refers to arrays that the file does not contain.
    """
    data = _parsed(text)
    defaults, values = (_rows(data.pop(what, None), what) for what in ("defaults", "values"))
    structure = data.pop("structure", None)
    if not isinstance(structure, str) or not all(isinstance(name, str) for row in values.values() for name in row.values()):
        raise GraphDataError("the values of the description are not names, or its digest is not text.")

    def find(node: str, field: str, reference: Any) -> Array:
        if isinstance(reference, dict):
            return _array_from_data(reference)
        array = find_array(reference)
        if array is None:
            raise GraphDataError(f"{field} of {node!r} is {str(reference)[:60]!r}, which the file does not have.")
        return array

    graph = graph_from_data(data, find)
    _check_sizes(graph)
    for name, sparse in list(graph.of_type(Sparse)):
        replace_operation(graph, name, _with_nonzeros(name, sparse))
    for name, places in defaults.items():
        current = {p: find_array(place) for p, place in places.items()}
        replace_operation(graph, name, _with_changed_defaults(graph.operation(name) if name in graph.nx else None, current))
    return Description(graph, values, structure)


def _rows(data: object, what: str) -> dict[str, dict[str, Any]]:
    if not isinstance(data, dict) or not all(isinstance(row, dict) for row in data.values()):
        raise GraphDataError(f"the {what} of the description are not objects by node.")
    return data


def _check_sizes(graph: Graph) -> None:
    incoming = Counter(edge.target for edge in graph.edges)
    if len(graph.names) > _NODES or len(graph.edges) > _EDGES or max(incoming.values(), default=0) > _INCOMING:
        raise GraphDataError(
            f"the description has {len(graph.names):,} nodes and {len(graph.edges):,} edges; snnc reads at most {_NODES:,} nodes, "
            f"{_EDGES:,} edges, and {_INCOMING:,} edges into one node."
        )
    for name, windows in graph.of_type(Conv, Pool):
        numbers = [*windows.stride, *windows.dilation, *(n for pair in windows.padding for n in pair)]
        numbers += windows.kernel if isinstance(windows, Pool) else []
        if max(numbers, default=0) > _WINDOW:
            raise GraphDataError(f"a setting of the windows of {name!r} is {max(numbers)}; it must be at most {_WINDOW:,}.")


def _with_nonzeros(name: str, operation: Sparse) -> Sparse:
    """Return `operation` with its weight reduced from the file's dense matrix to the described entries."""
    dense = operation.weight
    if dense.shape != operation.shape or operation.indices.ndim != 1:
        raise GraphDataError(f"the weight of {name!r} has the shape {dense.shape} in the file; {operation.shape} is described.")
    sparse = replace(operation, weight=np.zeros(operation.indices.shape, np.float32))
    check_pattern(name, sparse)
    return replace(sparse, weight=nonzeros_of(dense, sparse))


def _with_changed_defaults(operation: Operation | None, current: Mapping[str, Array | None]) -> Population:
    """Return `operation` with those parameters in `current`, read from the file, that differ from the model's defaults."""
    if not isinstance(operation, Population) or not current.keys() <= operation.model.parameters.keys():
        raise GraphDataError("the defaults of the description do not belong to a population.")
    with np.errstate(over="ignore"):
        defaults = {p: np.float32(operation.model.parameters[p]) for p in current}
    changed = {p: a for p, a in current.items() if a is not None and not (a == defaults[p]).all()}
    return replace(operation, parameters={**operation.parameters, **changed})
