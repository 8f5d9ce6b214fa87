"""Handlers of activation functions and of rounding, which become functions of the equation language, and of operators that are refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.frontends.onnx.errors import NotYetError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import Node

_LEVELS: Final = 64
"""Maximum difference of the largest and the smallest integer that a rounded value may take; each level costs one comparison."""


def _number(call: OperatorCall, name: str, default: float) -> float:
    return float(call.attribute(name, default))


_Make: TypeAlias = Callable[..., Node]
"""The method :meth:`OperatorCall.elementwise`."""
_Formula: TypeAlias = Callable[[_Make, Node, OperatorCall], Node]
"""Returns the node of an activation, given its first input and its call."""


def _softplus(make: _Make, x: Node, call: OperatorCall) -> Node:
    """Return ``log(1 + exp(x))``, without overflow and with the derivative 1/2 at 0."""
    size = make("abs", x)
    return make("add", make("mul", make("add", x, size), 0.5), make("log", make("add", make("exp", make("neg", size)), 1.0)))


def _leaky_relu(make: _Make, x: Node, call: OperatorCall) -> Node:
    slope = call.node(1) if call.operation.op == "PRelu" else _number(call, "alpha", 0.01)
    return make("add", make("max", 0.0, x), make("mul", make("min", x, 0.0), slope))


def _elu(make: _Make, x: Node, call: OperatorCall) -> Node:
    celu, selu = call.operation.op == "Celu", call.operation.op == "Selu"
    alpha = _number(call, "alpha", 1.67326319217681884765625 if selu else 1.0)
    low = make("min", x, 0.0)
    negative = make("mul", make("sub", make("exp", make("div", low, alpha) if celu else low), 1.0), alpha)
    result = make("add", make("max", 0.0, x), negative)
    return make("mul", result, _number(call, "gamma", 1.05070102214813232421875)) if selu else result


def _hard_sigmoid(make: _Make, x: Node, alpha: float, beta: float) -> Node:
    return make("min", make("max", make("add", make("mul", x, alpha), beta), 0.0), 1.0)


def _gelu(make: _Make, x: Node, call: OperatorCall) -> Node:
    if call.attribute("approximate", "none") == "tanh":
        cubed = make("mul", make("mul", x, x), x)
        inner = make("tanh", make("mul", make("add", x, make("mul", cubed, 0.044715)), math.sqrt(2 / math.pi)))
    else:
        inner = make("erf", make("mul", x, math.sqrt(0.5)))
    return make("mul", make("mul", x, 0.5), make("add", inner, 1.0))


def _swish(make: _Make, x: Node, call: OperatorCall) -> Node:
    alpha = _number(call, "alpha", 1.0)
    return make("mul", x, make("sigmoid", x if alpha == 1.0 else make("mul", x, alpha)))


_FORMULAS: Final[Mapping[str, _Formula]] = {
    "Softplus": _softplus,
    "Softsign": lambda make, x, call: make("div", x, make("add", make("abs", x), 1.0)),
    "LeakyRelu": _leaky_relu,
    "PRelu": _leaky_relu,
    "Elu": _elu,
    "Selu": _elu,
    "Celu": _elu,
    "HardSigmoid": lambda make, x, call: _hard_sigmoid(make, x, _number(call, "alpha", 0.2), _number(call, "beta", 0.5)),
    "HardSwish": lambda make, x, call: make("mul", x, _hard_sigmoid(make, x, 1 / 6, 0.5)),
    "Gelu": _gelu,
    "Mish": lambda make, x, call: make("mul", x, make("tanh", _softplus(make, x, call))),
    "Swish": _swish,
    "ThresholdedRelu": lambda make, x, call: make("where", make("gt", x, _number(call, "alpha", 1.0)), x, 0.0),
}


def _activation(call: OperatorCall) -> list[Value]:
    return [_FORMULAS[call.operation.op](call.elementwise, call.node(0), call)]


# ---- rounding --------------------------------------------------------------------------------------------------------

_ROUNDING: Final[Mapping[str, Callable[..., Any]]] = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.round}


def _round(call: OperatorCall) -> list[Value]:
    x, kind = call.node(0), call.operation.op
    if x.value is not None:
        return [call.pool.const(_ROUNDING[kind](x.value).astype(x.value.dtype))]
    low, high = _range(x)
    if math.isfinite(low) and math.isfinite(high):
        first, last = (int(_ROUNDING[kind](b)) for b in (low, high))
        return [_levels(call, kind, x, first, last)]
    return [call.pool.make(kind.lower(), (x,), x.shape)]


def _range(x: Node) -> tuple[float, float]:
    """Return the bounds to which a value is clipped, infinite if there are none."""
    low, high = -math.inf, math.inf
    while x.op in ("min", "max"):
        bound = next((n.value for n in x.inputs if n.value is not None and n.value.size == 1), None)
        inner = next((n for n in x.inputs if n.value is None), None)
        if bound is None or inner is None:
            break
        number = float(bound.reshape(-1)[0])
        limit = min if x.op == "min" else max
        low, high, x = limit(low, number), limit(high, number), inner
    return low, high


def clipped_round(call: OperatorCall, x: Node, low: Node | None, high: Node | None) -> Node | None:
    """Return a rounded value, clipped to integers, as a sum of comparisons; None if `x` is not rounded, or not between two integers."""
    kind = x.op.capitalize()
    bounds = [float(n.value.item()) for n in (low, high) if n is not None and n.value is not None and n.value.size == 1]
    if kind not in _ROUNDING or len(bounds) < 2 or not all(b.is_integer() for b in bounds):
        return None
    return _levels(call, kind, x.inputs[0], int(bounds[0]), int(bounds[1]))


def _levels(call: OperatorCall, kind: str, x: Node, first: int, last: int) -> Node:
    """Return a rounded value as a sum of comparisons: ``floor(x) = first + (x >= first + 1) + …``; halves are rounded to even integers."""
    if last - first > _LEVELS:
        raise NotYetError(f"{call.where}: it rounds to {last - first + 1} levels; snnc reads at most {_LEVELS + 1}. Clip to fewer levels.")
    make = call.elementwise
    below = {"Floor": 0.0, "Ceil": 1.0, "Round": 0.5}[kind]  # how far below a level the values begin that are rounded to it
    steps = [
        make("gt" if kind == "Ceil" or (kind == "Round" and level % 2 == 1) else "ge", x, level - below)
        for level in range(first + 1, last + 1)
    ]
    if not steps:
        return call.pool.const(np.full(x.shape, first, np.float32))
    total = reduce(partial(make, "add"), steps)
    return make("add", total, float(first)) if first else total


def _refused(call: OperatorCall) -> list[Value]:
    raise UnsupportedOperatorError(
        f"{call.where}: {call.operation.op} couples the neurons of a layer, or is not a function of the equation language; snnc reads "
        "neurons that compute elementwise. Leave it out of the exported model, or apply it to snnc's results."
    )


_REFUSED: Final = (
    *("Softmax", "LogSoftmax", "Hardmax", "LayerNormalization", "GroupNormalization", "InstanceNormalization"),
    *("TopK", "ArgMax", "ArgMin"),
)
HANDLERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(_FORMULAS, _activation),
    **dict.fromkeys(_ROUNDING, _round),
    **dict.fromkeys(_REFUSED, _refused),
}
