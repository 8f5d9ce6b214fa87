"""Interpreter of assignments over NumPy arrays: it defines the meaning of expressions, for the reference backend and for tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.neurons.expression import Assignment, Call, Expression, Number, Symbol

Array: TypeAlias = npt.NDArray[Any]

_erf: Final = np.vectorize(math.erf, otypes=[np.float64])


def evaluate(assignments: Iterable[Assignment], environment: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """Run `assignments` in order and return the assigned values; ``detach(x)`` is ``x``.

    `environment` contains the values of names that are read before they are assigned; the widest floating type among them is that of all
    results. Arrays are broadcast as in NumPy; a value that depends on no array has no dimensions.
    """
    values = {name: np.asarray(value) for name, value in environment.items()}
    floating = [value.dtype for value in values.values() if np.issubdtype(value.dtype, np.floating)]
    real = np.result_type(*floating) if floating else np.dtype(np.float64)
    values = {name: value.astype(real, copy=False) for name, value in values.items()}
    assigned: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        for assignment in assignments:
            values[assignment.target] = assigned[assignment.target] = _value(assignment.value, values, real)
    return assigned


def _value(expression: Expression, values: Mapping[str, Array], real: np.dtype[Any]) -> Array:
    match expression:
        case Number(value):
            return np.asarray(value, dtype=real)
        case Symbol(name):
            return values[name]
        case Call("erf", (operand,)):
            return np.asarray(_erf(_value(operand, values, real)), dtype=real)
        case Call(function, args):
            return np.asarray(FUNCTIONS[function](*(_value(a, values, real) for a in args)), dtype=real)
    raise TypeError(expression)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: getattr(np, name) for name in ("exp", "log", "sqrt", "abs", "sign", "tanh", "sin", "cos")},
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "pow": np.power,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "min": np.minimum,
    "max": np.maximum,
    "spike": lambda x: np.greater(x, 0),
    "spike_ge": lambda x: np.greater_equal(x, 0),
    "detach": np.asarray,
    "float16": lambda x: x.astype(np.float16).astype(x.dtype),
    "gt": np.greater,
    "ge": np.greater_equal,
    "where": lambda c, a, b: np.where(c != 0, a, b),
}
