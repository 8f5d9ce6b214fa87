"""Handlers of matrix products and reductions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.frontends.onnx.errors import ShapeError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.elementwise import elementwise
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import Node
from snnc.frontends.onnx.operators.einsum import matmul


def _matmul(call: OperatorCall) -> list[Value]:
    a, b = call.node(0), call.node(1)
    if b.value is not None and b.value.ndim == 2:
        return [shaping.linear(call.pool, a, call.pool.derived("T", b, np.transpose))]
    if a.value is not None and a.value.ndim == 2 and len(b.shape) == 2:
        flipped = shaping.linear(call.pool, shaping.transpose(call.pool, b, (1, 0)), a)
        return [shaping.transpose(call.pool, flipped, (1, 0))]
    product = matmul(call, a, b)
    if product is not None:
        return [product]
    raise UnsupportedOperatorError(
        f"{call.where}: it multiplies {list(a.shape)} by {list(b.shape)}; snnc reads products of a value with a constant matrix."
    )


def _gemm(call: OperatorCall) -> list[Value]:
    a, b = call.node(0), call.node(1)
    if b.value is None and a.value is not None:
        raise UnsupportedOperatorError(
            f"{call.where}: it multiplies a constant {list(a.shape)} by values {list(b.shape)} from the left, which mixes the entries of "
            "their first axis (time, in a parallel spiking neuron); snnc runs one step after the other. Use a neuron that has a step, or "
            "export one."
        )
    if b.value is None or len(b.shape) != 2 or len(a.shape) != 2:
        raise UnsupportedOperatorError(f"{call.where}: snnc reads Gemm of a matrix with a constant matrix.")
    if call.flag("transA"):
        a = shaping.transpose(call.pool, a, (1, 0))
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))  # type: ignore[arg-type]
    w = b if call.flag("transB") else call.pool.derived("T", b, np.transpose)
    if alpha != 1.0:
        w = call.pool.derived(f"*{alpha!r}", w, lambda array: np.float32(alpha) * array)
    if not call.has(2):
        return [shaping.linear(call.pool, a, w)]
    c = call.node(2)
    if c.value is None:
        product = shaping.linear(call.pool, a, w)
        scaled = c if beta == 1.0 else elementwise(call.pool, "mul", c, call.pool.const(np.array(beta, np.float32)))
        return [elementwise(call.pool, "add", product, scaled)]
    bias = c.value if beta == 1.0 else np.float32(beta) * c.value
    if bias is c.value and bias.shape == (w.shape[0],):
        return [shaping.linear(call.pool, a, w, c)]
    if bias.ndim == 2 and bias.shape[0] == 1:
        bias = bias[0]
    if bias.ndim == 0 or bias.shape == (1,):
        bias = np.broadcast_to(bias.reshape(-1), (w.shape[0],))
    if bias.shape != (w.shape[0],):
        raise ShapeError(f"{call.where}: a bias of shape {list(c.shape)} for {w.shape[0]} outputs.")
    return [shaping.linear(call.pool, a, w, call.pool.const(bias))]


def _reduce(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    axes = call.axes(len(x.shape), 1)
    if axes is None or (not axes and not call.flag("noop_with_empty_axes")):
        axes = tuple(range(len(x.shape)))
    kind = call.operation.op.removeprefix("Reduce").lower()
    return [shaping.reduce(call.pool, x, kind, tuple(sorted(axes)), call.flag("keepdims", 1))]


def _mean(call: OperatorCall) -> list[Value]:
    nodes = call.nodes()
    total: Node = nodes[0]
    for n in nodes[1:]:
        total = elementwise(call.pool, "add", total, n)
    return [elementwise(call.pool, "div", total, call.pool.const(np.array(len(nodes), np.float32)))]


HANDLERS: Final[Mapping[str, Handler]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Mean": _mean,
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"), _reduce),
}
