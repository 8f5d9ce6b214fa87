"""Replace dynamic sizes by numbers, and check that other numbers result in the same recovered network."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Graph, Population
from snnc.frontends.onnx.errors import NotGenericError, OnnxError, ShapeError, TimeMixingError
from snnc.frontends.onnx.flattening.operation import Subgraph
from snnc.frontends.onnx.proof.traces import Imported

_FIRST: Final = 6
"""Smallest default for a dynamic size; smaller numbers are sizes of constants of the file."""
_DIFFERENCE: Final = 7
"""Difference between the two numbers that are compared for a dynamic size."""
_MAX_CANDIDATES: Final = 8
"""Maximum number of sizes of constants to try."""


def bind(symbols: tuple[str, ...], graph: Subgraph, recover: Callable[[Mapping[str, int], Mapping[str, int]], Imported]) -> Imported:
    """Recover the network with numbers for the dynamic sizes `symbols`; if the defaults do not fit, try sizes of constants.

    Raises
    ------
    NotGenericError
        Other sizes result in a different network.
    """
    failure: OnnxError | None = None
    for first in _bindings(symbols, graph):
        fixed = {s: n for s, n in first.items() if n < _FIRST}
        free = {s: n for s, n in first.items() if n >= _FIRST}
        try:
            found = recover(first, free)
            if free:
                larger = {s: n + _DIFFERENCE for s, n in free.items()}
                _compare(found.graph, recover({**fixed, **larger}, free).graph, free)
        except (ShapeError, TimeMixingError) as error:
            failure = failure or error
            continue
        for symbol, size in fixed.items():
            found.graph.assumptions.append(f"The file declares the size '{symbol}' as dynamic, but has constants that only fit {size}.")
        return replace(found, fixed=fixed)
    raise failure or ShapeError("no choice of the dynamic sizes fits the file.")


def _bindings(symbols: tuple[str, ...], graph: Subgraph) -> Iterator[dict[str, int]]:
    """Yield numbers for the dynamic sizes: the defaults, then the defaults with one size replaced by that of a constant."""
    default = {s: _FIRST + 3 * k for k, s in enumerate(symbols)}
    yield default
    sizes = sorted({int(s) for s in _leading_sizes(graph) if 0 < s < _FIRST})
    candidates = ({**default, symbol: size} for symbol, size in itertools.product(symbols, sizes))
    yield from itertools.islice(candidates, _MAX_CANDIDATES)


def _leading_sizes(graph: Subgraph) -> Iterator[int]:
    """Yield the size of the first axis of each constant with two or more axes."""
    for array in graph.constants.values():
        if array.ndim >= 2:
            yield array.shape[0]
    for operation in graph.operations:
        for value in operation.attributes.values():
            if isinstance(value, np.ndarray) and value.ndim >= 2:
                yield value.shape[0]
            elif isinstance(value, Subgraph):
                yield from _leading_sizes(value)


def _compare(first: Graph, second: Graph, sizes: Mapping[str, int]) -> None:
    if fingerprint(first) != fingerprint(second):
        names = ", ".join(f"'{s}'" for s in sizes)
        raise NotGenericError(
            f"the network changes with the size of {names}, which the file declares as dynamic; export it with fixed sizes."
        )


def fingerprint(graph: Graph) -> tuple[object, ...]:
    """Return a graph with all its arrays as a comparable value."""
    nodes = [(n, _operation(graph.operation(n))) for n in graph.names]
    return (tuple(nodes), tuple(map(repr, graph.edges)), tuple(graph.state_inputs.items()))


def _operation(operation: object) -> object:
    if isinstance(operation, Population):
        parameters = tuple((k, _content(v)) for k, v in operation.parameters.items())
        initial = tuple((k, _content(v)) for k, v in operation.initial.items())
        return (operation.model.text, operation.shape, parameters, initial)
    if not is_dataclass(operation):
        return repr(operation)
    return (type(operation).__name__, *(_content(getattr(operation, f.name)) for f in fields(operation)))


def _content(value: object) -> object:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)
