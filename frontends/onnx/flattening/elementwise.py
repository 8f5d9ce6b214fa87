"""Elementwise primitives: the functions of the equation language, with their NumPy meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from snnc.compiler.neurons.expression import FUNCTIONS
from snnc.frontends.onnx.errors import MalformedGraphError, ShapeError
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, Array, Node, Pool, Shape, check_size


def _divide(a: Any, b: Any) -> Any:
    if np.issubdtype(np.result_type(a, b), np.integer):
        return np.trunc(np.asarray(a, np.float64) / b).astype(np.result_type(a, b))
    return np.divide(a, b)


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(np.asarray(x).dtype)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _power(a: Any, b: Any) -> Any:
    return np.power(a, b).astype(np.asarray(a).dtype)


ELEMENTWISE: Final[Mapping[str, Callable[..., Any]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _divide,
    "neg": np.negative,
    "pow": _power,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sign": np.sign,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    "sin": np.sin,
    "cos": np.cos,
    "min": np.minimum,
    "max": np.maximum,
    "gt": lambda a, b: np.greater(a, b).astype(np.float32),
    "ge": lambda a, b: np.greater_equal(a, b).astype(np.float32),
    "detach": np.asarray,
    "where": lambda c, a, b: np.where(np.asarray(c) != 0, a, b),
}
"""Name to NumPy function; comparisons give 0 or 1 in float32."""

COMPARISONS: Final = frozenset({"gt", "ge"})


def apply(op: str, *arrays: Array) -> Array:
    """Evaluate one elementwise primitive."""
    with np.errstate(all="ignore"):
        return np.asarray(ELEMENTWISE[op](*arrays))


def elementwise(pool: Pool, op: str, *inputs: Node) -> Node:
    """Return ``op(*inputs)`` with NumPy broadcasting; constants are evaluated and keep their structure.

    Raises
    ------
    ShapeError
        The shapes do not broadcast.
    """
    if not inputs or len(inputs) != FUNCTIONS[op]:
        raise MalformedGraphError(f"'{op}' takes {FUNCTIONS[op]} input(s), not {len(inputs)}.")
    shape = broadcast(tuple(n.shape for n in inputs), op)
    if any(n.value is None for n in inputs):
        return pool.make(op, inputs, shape)
    known = pool.find(op, inputs, shape)
    if known is not None:
        return known
    check_size(shape, f"the constant result of '{op}'", MAX_CONSTANT)
    value = apply(op, *(n.value for n in inputs if n.value is not None))
    if value.dtype.kind in "ib" and op not in COMPARISONS:
        return pool.const(value)
    return pool.make(op, inputs, shape, value=value)


def broadcast(shapes: tuple[Shape, ...], op: str) -> Shape:
    """Return the common shape.

    Raises
    ------
    ShapeError
        There is none.
    """
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(s)) for s in shapes)
        raise ShapeError(f"the operands of '{op}' have the shapes {listed}, which do not fit together.") from None
