"""Handlers of convolutions, poolings and batch normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.frontends.common.windows import Pairs
from snnc.frontends.onnx.errors import MalformedGraphError, ShapeError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import Array, Node, Shape


def _padding(call: OperatorCall, size: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Pairs:
    mode = call.attribute("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = call.numbers("pads", (0,) * (2 * len(kernel)))
        return tuple(zip(pads[: len(kernel)], pads[len(kernel) :], strict=True))
    if mode == "VALID":
        return ((0, 0),) * len(kernel)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise MalformedGraphError(f"{call.where}: its attribute 'auto_pad' is {mode!r}.")
    pairs = []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return tuple(pairs)


def _windows(call: OperatorCall, kernel: Shape) -> tuple[Shape, Pairs, Shape]:
    size, ones = call.node(0).shape[2:], (1,) * len(kernel)
    if len(size) != len(kernel) or not kernel:
        raise ShapeError(f"{call.where}: windows of {list(kernel)} do not fit a value of shape {list(call.node(0).shape)}.")
    stride, dilation = call.numbers("strides", ones), call.numbers("dilations", ones)
    if min((*kernel, *stride, *dilation)) < 1:
        raise MalformedGraphError(f"{call.where}: sizes, strides and dilations of windows must be at least 1.")
    return stride, _padding(call, size, kernel, stride, dilation), dilation


def _conv(call: OperatorCall) -> list[Value]:
    x, weight = call.node(0), call.node(1)
    bias = call.node(2) if call.has(2) else None
    if weight.value is None or (bias is not None and bias.value is None):
        raise UnsupportedOperatorError(f"{call.where}: snnc reads convolutions with constant weights.")
    kernel = weight.shape[2:]
    if call.numbers("kernel_shape", kernel) != kernel:
        raise ShapeError(f"{call.where}: its attribute 'kernel_shape' does not fit the weight {list(weight.shape)}.")
    stride, padding, dilation = _windows(call, kernel)
    return [shaping.convolution(call.pool, x, weight, bias, stride, padding, dilation, call.integer("group", 1))]


def _pool(call: OperatorCall) -> list[Value]:
    kernel = call.attribute("kernel_shape")
    if not isinstance(kernel, tuple):
        raise MalformedGraphError(f"{call.where}: its attribute 'kernel_shape' is missing.")
    stride, padding, dilation = _windows(call, kernel)
    if any(name for name in call.operation.outputs[1:]):
        raise UnsupportedOperatorError(f"{call.where}: snnc does not read the indices of a maximum.")
    kind = "max" if call.operation.op == "MaxPool" else "average"
    ceil, count = call.flag("ceil_mode"), call.flag("count_include_pad")
    if kind == "max" or not any(p for pair in padding for p in pair):
        count = False
    return [shaping.pooling(call.pool, call.node(0), kind, kernel, stride, padding, dilation, ceil, count)]


def _global(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    if len(x.shape) < 3:
        raise ShapeError(f"{call.where}: a value of shape {list(x.shape)} has no spatial axes.")
    kind = "max" if "Max" in call.operation.op else "mean"
    return [shaping.reduce(call.pool, x, kind, tuple(range(2, len(x.shape))), True)]


def _batch_normalization(call: OperatorCall) -> list[Value]:
    if call.flag("training_mode") or any(name for name in call.operation.outputs[1:]):
        raise UnsupportedOperatorError(f"{call.where}: it runs in training mode; export the model after eval().")
    x = call.node(0)
    scale, bias, mean, variance = (call.array(k, "parameter").astype(np.float64) for k in range(1, 5))
    channels = x.shape[1] if len(x.shape) > 1 else 0
    if any(a.shape != (channels,) for a in (scale, bias, mean, variance)):
        raise ShapeError(
            f"{call.where}: its parameters of shape {list(scale.shape)} do not fit the {channels} channels of {list(x.shape)}."
        )
    epsilon = float(call.attribute("epsilon", 1e-5))
    if (variance + epsilon <= 0).any():
        raise MalformedGraphError(f"{call.where}: a variance is negative.")
    factor = scale / np.sqrt(variance + epsilon)
    shift = bias - mean * factor
    outputs_axis = 1 if x.op == "conv" else len(x.shape) - 1  # of output channels or features, if `x` is a convolution or matrix product
    if x.op in ("conv", "linear") and outputs_axis == 1 and x.value is None:
        return [_folded(call, x, factor, shift)]
    shape = (channels, *(1,) * (len(x.shape) - 2))
    weight, offset = (call.pool.const(a.astype(np.float32).reshape(shape)) for a in (factor, shift))
    call.pool.folded = True
    return [call.elementwise("add", call.elementwise("mul", x, weight), offset)]


def _folded(call: OperatorCall, x: Node, factor: Array, shift: Array) -> Node:
    """Return a matrix product or convolution with weights that include the normalisation after it."""
    call.pool.folded = True
    source, weight = x.inputs[:2]
    old = np.zeros(len(shift)) if len(x.inputs) < 3 else np.asarray(x.inputs[2].value, np.float64)
    scaled = np.asarray(weight.value, np.float64) * factor.reshape(-1, *(1,) * (len(weight.shape) - 1))
    weight_and_bias = call.pool.const(scaled.astype(np.float32)), call.pool.const((old * factor + shift).astype(np.float32))
    if x.op == "linear":
        return shaping.linear(call.pool, source, *weight_and_bias)
    return shaping.convolution(call.pool, source, *weight_and_bias, *x.attrs)


HANDLERS: Final[Mapping[str, Handler]] = {
    "Conv": _conv,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "GlobalAveragePool": _global,
    "GlobalMaxPool": _global,
    "BatchNormalization": _batch_normalization,
}
