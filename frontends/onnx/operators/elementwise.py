"""Handlers of elementwise operators, which become functions of the equation language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from typing import Final

import numpy as np
import onnx

from snnc.frontends.onnx.errors import MalformedGraphError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import Node
from snnc.frontends.onnx.operators.activation import clipped_round
from snnc.frontends.onnx.recovery.detaching import MARK, PARAMETER

DIRECT: Final[dict[str, str]] = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "Neg": "neg",
    "Pow": "pow",
    "Exp": "exp",
    "Log": "log",
    "Sqrt": "sqrt",
    "Abs": "abs",
    "Sign": "sign",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "Erf": "erf",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "Where": "where",
}
"""Function of the equation language by ONNX operator, for operators that are exactly one function."""
EXTREMES: Final[Mapping[str, str]] = {"Max": "max", "Min": "min"}
"""Function of two operands by ONNX operator, for operators with any number of operands."""
WAVES: Final[dict[str, str]] = {"Sin": "sin", "Cos": "cos"}
"""Function by ONNX operator, for operators that snnc only reads in files that contain its description."""
_VARIADIC: Final[Mapping[str, str]] = {"Sum": "add", **EXTREMES}


def _direct(call: OperatorCall) -> list[Value]:
    return [call.elementwise((DIRECT | WAVES)[call.operation.op], *call.nodes())]


def _as_float(call: OperatorCall, n: Node) -> Node:
    return call.pool.const(n.value.astype(np.float32)) if n.value is not None and n.value.dtype.kind in "bi" else n


def _equal(call: OperatorCall) -> list[Value]:
    a, b = call.node(0), call.node(1)
    at_least = call.elementwise("ge", a, b)
    return [call.elementwise("mul", at_least, call.elementwise("ge", b, a))]


def _mod(call: OperatorCall) -> list[Value]:
    a, b = call.node(0).value, call.node(1).value
    if a is None or b is None:
        raise UnsupportedOperatorError(f"{call.where}: snnc reads Mod of sizes and other constants, not of values of the network.")
    remainder = np.fmod if call.integer("fmod", 0) else np.mod
    return [call.pool.const(np.asarray(remainder(a, b), a.dtype))]


def _clip(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    rounded = clipped_round(call, x, *(call.node(k) if call.has(k) else None for k in (1, 2)))
    if rounded is not None:
        return [rounded]
    if call.has(1):
        x = call.elementwise("max", x, call.node(1))
    if call.has(2):
        x = call.elementwise("min", x, call.node(2))
    return [x]


def _marked_identity(call: OperatorCall) -> list[Value]:
    """Handle Identity in a file with marks: it may stop the gradient, or name a learnable parameter."""
    name = call.operation.name
    if name.startswith(MARK):
        return [call.elementwise("detach", call.node(0))]
    x = call.node(0)
    if name.startswith(PARAMETER) and x.value is not None:
        return [call.pool.make("parameter", (x,), x.shape, (name.removeprefix(PARAMETER),), x.value)]
    return [x]


def _cast(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    if call.operation.op == "CastLike":
        like = call.node(1).value
        target = np.dtype(np.float32) if like is None else like.dtype
    else:
        target = _dtype(call, call.integer("to"))
    if x.value is not None:
        same = x.value.dtype == target or (target.kind == "f" and x.value.dtype.kind == "f")
        return [x if same else call.pool.const(x.value.astype(target))]
    if target.kind != "f" and (x.op == "input" or not _survives_cast(x, target.kind == "b")):
        raise UnsupportedOperatorError(f"{call.where}: it rounds values of the network to {target}, but snnc computes in float32.")
    return [x]


def _survives_cast(x: Node, truth: bool) -> bool:
    """Return whether a cast to an integer type, or to bool if `truth`, does not change a value.

    The value must be computed from comparisons and integers. Parts of inputs are assumed to be spikes, because some files cast these.
    """
    seen, stack = {x.id}, [x]
    while stack:
        n = stack.pop()
        if n.value is not None:
            if not (np.isin(n.value, (0, 1)) if truth else n.value == np.round(n.value)).all():
                return False
            continue
        if n.op in ("gt", "ge", "input"):
            continue
        if n.op not in ("reshape", "slice", "mul", "max", "sub", "detach") or (truth and n.op == "sub" and n.inputs[0].value is None):
            return False
        stack.extend(i for i in n.inputs if i.id not in seen)
        seen.update(i.id for i in n.inputs)
    return True


def _dropout(call: OperatorCall) -> list[Value]:
    if call.has(2) and call.array(2, "training mode").any() and not (call.has(1) and not call.array(1, "ratio").any()):
        raise UnsupportedOperatorError(f"{call.where}: it is in training mode and drops at random; export the model after eval().")
    return [call.arguments[0]]


def _dtype(call: OperatorCall, code: int) -> np.dtype[np.generic]:
    try:
        target = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError, TypeError):
        raise MalformedGraphError(f"{call.where}: the data type {code} is unknown.") from None
    return np.dtype(np.float32) if target.kind == "f" else target


HANDLERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(DIRECT, _direct),
    **dict.fromkeys(_VARIADIC, lambda call: [reduce(partial(call.elementwise, _VARIADIC[call.operation.op]), call.nodes())]),
    "And": lambda call: [call.elementwise("mul", *(_as_float(call, n) for n in call.nodes()))],
    "Or": lambda call: [call.elementwise("max", *(_as_float(call, n) for n in call.nodes()))],
    "Less": lambda call: [call.elementwise("gt", call.node(1), call.node(0))],
    "LessOrEqual": lambda call: [call.elementwise("ge", call.node(1), call.node(0))],
    "Equal": _equal,
    "Not": lambda call: [call.elementwise("sub", 1.0, _as_float(call, call.node(0)))],
    "Mod": _mod,
    "Relu": lambda call: [call.elementwise("max", 0.0, call.node(0))],
    "Reciprocal": lambda call: [call.elementwise("div", 1.0, call.node(0))],
    "Clip": _clip,
    "Identity": lambda call: [call.arguments[0]],
    "Dropout": _dropout,
    "Cast": _cast,
    "CastLike": _cast,
}
DESCRIBED: Final[Mapping[str, Handler]] = dict.fromkeys(WAVES, _direct)
"""Additional handlers for files that contain snnc's description; sines and cosines are evaluated, but never become equations."""
MARKED: Final[Mapping[str, Handler]] = {"Identity": _marked_identity}
"""Handlers that replace those of :data:`HANDLERS` in files that mark where gradients stop."""
