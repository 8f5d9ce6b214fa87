"""Convolutions and poolings as ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnc.compiler.ir.arrays.windows import Windows, windows_of
from snnc.compiler.ir.graph import Conv, Pool
from snnc.frontends.onnx.writer.builder import Builder, StepTensor


def print_conv(to: Builder, name: str, operation: Conv, value: StepTensor) -> str:
    """Add a convolution."""
    windows = windows_of(name, operation, value.shape)
    arrays = [to.constants.own(operation.weight, name, "weight")]
    if operation.bias is not None:
        arrays.append(to.constants.own(operation.bias, name, "bias"))
    return to.node("Conv", value.name, *arrays, wanted=name, group=operation.groups, dilations=windows.dilation, **_places(windows))


def print_pool(to: Builder, name: str, operation: Pool, value: StepTensor) -> str:
    """Add a pooling; sums, and averages with dilation or a window that sticks out, as a convolution with ones."""
    windows = windows_of(name, operation, value.shape)
    if operation.kind == "max":
        return _print_max(to, name, windows, value.name)
    plain = set(windows.dilation) == {1} and not any(_overhang(windows))
    if operation.kind == "average" and plain:
        return to.node("AveragePool", value.name, wanted=name, count_include_pad=int(operation.count_padding), **_places(windows))
    ones = to.constants.floats(np.ones((windows.channels, 1, *windows.kernel)), f"{name}.window")
    made = to.node("Conv", value.name, ones, wanted=name, group=windows.channels, dilations=windows.dilation, **_places(windows))
    if operation.kind == "sum":
        return made
    counts = windows.taps_inside(operation.count_padding)
    taps = counts[0] if len(counts) == 1 else counts[0][:, None] * counts[1]
    return to.node("Div", made, to.constants.floats(taps, f"{name}.taps"), wanted=name)


def _print_max(to: Builder, name: str, windows: Windows, value: str) -> str:
    """Add a max pooling; ONNX counts windows that stick out in another way than PyTorch, so what they reach becomes padding."""
    places = _places(windows)
    pads = places["pads"]
    if any(pad >= k for pad, k in zip(pads, windows.kernel * 2, strict=True)):
        around = np.array([0, 0, *pads[: len(pads) // 2], 0, 0, *pads[len(pads) // 2 :]], np.int64)
        lowest = to.constants.floats(np.finfo(np.float32).min, f"{name}.lowest")
        value = to.node("Pad", value, to.constants.integers(around, f"{name}.around"), lowest, wanted=f"{name}.padded")
        places["pads"] = [0] * len(pads)
    return to.node("MaxPool", value, wanted=name, dilations=windows.dilation, **places)


def _places(windows: Windows) -> dict[str, Any]:
    return {"kernel_shape": windows.kernel, "strides": windows.stride, "pads": _pads(windows, _overhang(windows))}


def _pads(windows: Windows, overhang: list[int]) -> list[int]:
    after = [p[1] + more for p, more in zip(windows.padding, overhang, strict=True)]
    return [*(p[0] for p in windows.padding), *after]


def _overhang(windows: Windows) -> list[int]:
    """The length by which the last window of each dimension extends beyond the padded input."""
    sizes = zip(windows.size, windows.kernel, windows.stride, windows.padding, windows.dilation, windows.output, strict=True)
    return [max(0, (count - 1) * s + (k - 1) * d + 1 - n - sum(p)) for n, k, s, p, d, count in sizes]
