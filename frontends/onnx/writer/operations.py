"""Convert the operations of one time step to ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.arrays.sparse import to_linear
from snnc.compiler.ir.arrays.windows import Windows, windows_of
from snnc.compiler.ir.graph import Operation, Shape
from snnc.compiler.ir.shapes import reduced_axes, sliced_axis
from snnc.frontends.onnx.writer.builder import Builder, StepTensor
from snnc.frontends.onnx.writer.errors import NoOnnxFormError


def add_operation(to: Builder, name: str, operation: Operation, inputs: list[StepTensor], shape: Shape) -> StepTensor:
    """Add the nodes that compute node `name` of the graph, which is neither Input, Output nor Population; return its result, of `shape`.

    `inputs` are in the order of the edges, or of the ports for Concat. An operation without counterpart in ONNX raises a NoOnnxFormError.
    """
    first = inputs[0]
    match operation:
        case ir.Linear() | ir.Sparse():
            dense = to_linear(operation) if isinstance(operation, ir.Sparse) else operation
            inner = to.shaped(first, dense.weight.shape[1:])
            result = to.node("Gemm", inner.name, *_weights(to, name, dense), hint=name, transB=1)
        case ir.Conv():
            windows = windows_of(name, operation, first.shape)
            result = _convolution(to, name, first.name, windows, _weights(to, name, operation), operation.groups)
        case ir.Pool():
            result = _pooling(to, name, operation, first)
        case ir.Scale(weight=weight, bias=bias):
            result = to.node("Mul", first.name, to.constants.field_array(weight, name, "weight"), hint=name)
            if bias is not None:
                result = to.node("Add", result, to.constants.field_array(bias, name, "bias"), hint=name)
        case ir.OneToOne(weight=None) | ir.Flatten() | ir.Reshape():
            return to.shaped(first, shape)
        case ir.OneToOne(weight=weight) if weight is not None:
            inner = to.shaped(first, weight.shape) if weight.ndim else first
            product = to.node("Mul", inner.name, to.constants.field_array(weight, name, "weight"), hint=name)
            return to.shaped(StepTensor(product, inner.shape), shape)
        case ir.Add():
            return to.total(inputs, shape)
        case ir.Concat(axis=axis):
            result = to.node("Concat", *(v.name for v in inputs), hint=name, axis=axis % len(shape) + 1)
        case ir.Reduce(kind=kind, keepdims=keepdims):
            axes = [axis + 1 for axis in reduced_axes(name, operation, first.shape)]
            result = reduction(to, kind, first.name, axes, keepdims, name)
        case ir.Slice(start=start, stop=stop):
            axis = sliced_axis(name, operation, first.shape) + 1
            bounds = [to.constants.integers([number]) for number in (start, stop, axis)]
            result = to.node("Slice", first.name, *bounds, hint=name)
        case ir.Pad(padding=padding):
            pads = [0, *(before for before, _ in padding), 0, *(after for _, after in padding)]
            result = to.node("Pad", first.name, to.constants.integers(pads, "around"), hint=name)
        case _:
            raise NoOnnxFormError(
                f"{name!r} is a {type(operation).__name__}, which has no counterpart in ONNX; remove it from the network."
            )
    return StepTensor(result, shape)


def reduction(to: Builder, kind: str, value: str, axes: list[int], keepdims: bool, hint: str) -> str:
    """Add a sum, mean, maximum or minimum over `axes`, and return its name."""
    operator = f"Reduce{kind.capitalize()}"
    if kind == "sum":  # since opset 13, ReduceSum has its axes as an input; the others have it as an attribute until opset 18
        return to.node(operator, value, to.constants.integers(axes), hint=hint, keepdims=int(keepdims))
    return to.node(operator, value, hint=hint, axes=axes, keepdims=int(keepdims))


def _weights(to: Builder, name: str, operation: ir.Linear | ir.Conv) -> list[str]:
    arrays = {"weight": operation.weight} | ({} if operation.bias is None else {"bias": operation.bias})
    return [to.constants.field_array(array, name, field) for field, array in arrays.items()]


def _convolution(to: Builder, name: str, value: str, windows: Windows, weights: list[str], groups: int) -> str:
    return to.node("Conv", value, *weights, hint=name, group=groups, dilations=windows.dilation, **_window_attributes(windows))


def _pooling(to: Builder, name: str, operation: ir.Pool, value: StepTensor) -> str:
    """Add a pooling; sums, and averages with dilation or windows that extend beyond the padded input, become a convolution with ones."""
    windows = windows_of(name, operation, value.shape)
    if operation.kind == "max":
        return _max_pooling(to, name, windows, value.name)
    plain = set(windows.dilation) == {1} and not any(_overhang(windows))
    if operation.kind == "average" and plain:
        return to.node("AveragePool", value.name, hint=name, count_include_pad=int(operation.count_padding), **_window_attributes(windows))
    ones = to.constants.floats(np.ones((windows.channels, 1, *windows.kernel)), f"{name}.window")
    result = _convolution(to, name, value.name, windows, [ones], windows.channels)
    if operation.kind == "sum":
        return result
    counts = windows.taps_inside(operation.count_padding)
    taps = counts[0] if len(counts) == 1 else counts[0][:, None] * counts[1]
    return to.node("Div", result, to.constants.floats(taps, f"{name}.taps"), hint=name)


def _max_pooling(to: Builder, name: str, windows: Windows, value: str) -> str:
    """Add a max pooling; padding as wide as the window, which ONNX Runtime refuses, becomes a separate node."""
    attributes = _window_attributes(windows)
    pads = attributes["pads"]
    if any(pad >= k for pad, k in zip(pads, windows.kernel * 2, strict=True)):
        all_axes = [0, 0, *pads[: len(pads) // 2], 0, 0, *pads[len(pads) // 2 :]]
        lowest = to.constants.floats(np.finfo(np.float32).min, f"{name}.lowest")
        value = to.node("Pad", value, to.constants.integers(all_axes, f"{name}.around"), lowest, hint=f"{name}.padded")
        attributes["pads"] = [0] * len(pads)
    return to.node("MaxPool", value, hint=name, dilations=windows.dilation, **attributes)


def _window_attributes(windows: Windows) -> dict[str, Any]:
    """Return the attributes of an ONNX convolution or pooling; windows that extend beyond the padded input become additional padding."""
    after = [p[1] + more for p, more in zip(windows.padding, _overhang(windows), strict=True)]
    return {"kernel_shape": windows.kernel, "strides": windows.stride, "pads": [*(p[0] for p in windows.padding), *after]}


def _overhang(windows: Windows) -> list[int]:
    """Return how far the last window of each dimension extends beyond the padded input; ONNX and PyTorch count such windows differently."""
    sizes = zip(windows.size, windows.kernel, windows.stride, windows.padding, windows.dilation, windows.output, strict=True)
    return [max(0, (count - 1) * s + (k - 1) * d + 1 - n - sum(p)) for n, k, s, p, d, count in sizes]
