"""NumPy implementations of the functions of the equation language, and of reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.neurons.expression import SPIKES
from snnc.compiler.neurons.interpret import FUNCTIONS


def _divide(a: Any, b: Any) -> Any:
    """Return ``a / b``; between integers, truncated towards zero, as ONNX's Div does."""
    if np.issubdtype(np.result_type(a, b), np.integer):
        return np.trunc(np.asarray(a, np.float64) / b).astype(np.result_type(a, b))
    return np.divide(a, b)


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(np.asarray(x).dtype)


ELEMENTWISE: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: function for name, function in FUNCTIONS.items() if name not in (*SPIKES, "float16")},
    "div": _divide,
    "pow": lambda a, b: np.power(a, b).astype(np.asarray(a).dtype),
    "erf": _erf,
    "gt": lambda a, b: np.greater(a, b).astype(np.float32),
    "ge": lambda a, b: np.greater_equal(a, b).astype(np.float32),
}
"""NumPy function, by name in the equation language; comparisons return 0 or 1 in float32."""

COMPARISONS: Final = frozenset({"gt", "ge"})


def apply(op: str, *arrays: Array) -> Array:
    """Evaluate an elementwise function without warnings."""
    with np.errstate(all="ignore"):
        return np.asarray(ELEMENTWISE[op](*arrays))


def reduce_over(kind: str, x: Array, axes: tuple[int, ...]) -> Array:
    """Return the "sum", "mean", "max" or "min" of `x` over `axes`, which remain with size 1."""
    return np.asarray(getattr(np, kind)(x, axis=axes, keepdims=True))


def largest_magnitude(values: Array) -> float:
    """Return the largest finite absolute value; 0 if there is none."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def difference(a: Array, b: Array) -> Array:
    """Return the absolute difference; 0 between equal infinities and between NaNs."""
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, gap)
