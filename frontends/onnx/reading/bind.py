"""Replace dynamic sizes by numbers, and check that other numbers result in the same network."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Graph, Operation, Population
from snnc.frontends.onnx.errors import NotGenericError, OnnxError, ShapeError, TimeMixingError
from snnc.frontends.onnx.flattening.operation import Subgraph
from snnc.frontends.onnx.proof.traces import Imported
from snnc.frontends.onnx.recover import ParsedFile, recover

_FIRST: Final = 6
"""Smallest default number for a dynamic size; smaller numbers only come from sizes of the file's constants."""
_DIFFERENCE: Final = 7
"""Difference of the two numbers for a dynamic size whose networks are compared."""
_MAX_CANDIDATES: Final = 8
"""Maximum number of sizes of constants to try."""


def bind(source: ParsedFile) -> Imported:
    """Recover the network with numbers for the file's dynamic sizes; if the defaults do not fit, try the sizes of constants.

    If other sizes result in a different network, raise a NotGenericError; if no numbers fit, the first error of :func:`recover`.
    """
    failure: OnnxError | None = None
    for sizes in _bindings(source):
        fixed = {s: n for s, n in sizes.items() if n < _FIRST}
        free = {s: n for s, n in sizes.items() if n >= _FIRST}
        try:
            imported = recover(source, sizes, free)
            larger = {s: n + _DIFFERENCE for s, n in free.items()}
            if free and fingerprint(imported.graph) != fingerprint(recover(source, {**fixed, **larger}, free).graph):
                names = ", ".join(f"'{s}'" for s in free)
                raise NotGenericError(
                    f"the network changes with the size of {names}, which the file declares as dynamic; export it with fixed sizes."
                )
        except (ShapeError, TimeMixingError) as error:
            failure = failure or error
            continue
        for symbol, size in fixed.items():
            imported.graph.assumptions.append(f"The file declares the size '{symbol}' as dynamic, but has constants that only fit {size}.")
        return replace(imported, fixed=fixed)
    raise failure or ShapeError("no choice of the dynamic sizes fits the file.")


def _bindings(source: ParsedFile) -> Iterator[dict[str, int]]:
    """Yield numbers for the dynamic sizes: the defaults, then the defaults with one size replaced by that of a constant."""
    default = {s: _FIRST + 3 * k for k, s in enumerate(source.symbols)}  # different numbers, so that sizes are not mistaken for each other
    yield default
    sizes = sorted({int(s) for s in _leading_sizes(source.graph) if 0 < s < _FIRST})
    candidates = ({**default, symbol: size} for symbol, size in itertools.product(source.symbols, sizes))
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


def fingerprint(graph: Graph) -> tuple[object, ...]:
    """Return a value that is equal for graphs with equal nodes, arrays, edges and state inputs."""
    nodes = [(n, _operation(graph.operation(n))) for n in graph.names]
    return (tuple(nodes), tuple(map(repr, graph.edges)), tuple(graph.state_inputs.items()))


def _operation(operation: Operation) -> object:
    if isinstance(operation, Population):
        arrays = [(k, _content(v)) for values in (operation.parameters, operation.initial) for k, v in values.items()]
        return (operation.model.text, operation.shape, arrays)
    return (type(operation).__name__, *(_content(getattr(operation, f.name)) for f in fields(operation)))


def _content(value: object) -> object:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)
