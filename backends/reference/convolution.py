"""Convolutions as matrix products, in which each row of a matrix contains the values of one window."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from snnc.backends.runtime.engine import Array
from snnc.compiler.ir.arrays.windows import Windows


def windows_in(x: Array, windows: Windows, outside: float = 0.0) -> Array:
    """Return a view of the values that each tap (element of the kernel) of each window reads: [B, channels, *output, *kernel].

    `x` is [B, channels * size]; `outside` is the value of the padding.
    """
    padded = np.pad(x.reshape(len(x), *windows.shape), ((0, 0), (0, 0), *_margins(windows)), constant_values=outside)
    extents = tuple((k - 1) * d + 1 for k, d in zip(windows.kernel, windows.dilation, strict=True))
    view: Array = sliding_window_view(padded, extents, axis=tuple(range(2, padded.ndim)))
    starts = [slice(0, (n - 1) * s + 1, s) for n, s in zip(windows.output, windows.stride, strict=True)]
    return view[:, :, *starts, *(slice(None, None, d) for d in windows.dilation)]


def windows_into(taps: Array, windows: Windows) -> Array:
    """Add the contribution of every tap to the value that it read: the adjoint of :func:`windows_in`.

    `taps` is [B, channels, *output, *kernel]; the result is [B, channels * size].
    """
    dimensions, margins = len(windows.size), _margins(windows)
    padded = tuple(n + before + after for n, (before, after) in zip(windows.size, margins, strict=True))
    sums = np.zeros((len(taps), windows.channels, *padded), taps.dtype)
    for tap in np.ndindex(*windows.kernel):
        read = [
            slice(j * d, j * d + (n - 1) * s + 1, s)
            for j, d, n, s in zip(tap, windows.dilation, windows.output, windows.stride, strict=True)
        ]
        sums[:, :, *read] += taps[:, :, *(slice(None),) * dimensions, *tap]
    inside = [slice(before, before + n) for (before, _), n in zip(margins, windows.size, strict=True)]
    return sums[:, :, *inside].reshape(len(taps), -1)


def _margins(windows: Windows) -> tuple[tuple[int, int], ...]:
    """Return the padding before and after each axis, with the positions beyond it that the last window reads."""
    sizes = zip(windows.output, windows.stride, windows.kernel, windows.dilation, strict=True)
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in sizes]
    return tuple((before, max(after, r - before - n)) for (before, after), r, n in zip(windows.padding, reach, windows.size, strict=True))


def convolve(x: Array, weight: Array, windows: Windows, groups: int) -> Array:
    """Correlate [B, channels * size] with weight [out, channels / groups, *kernel]; the result is [B, out channels * output positions]."""
    return _from_rows(_rows(x, windows, groups) @ _by_group(weight, groups).swapaxes(1, 2), len(x))


def convolve_input_gradient(d_y: Array, weight: Array, windows: Windows, groups: int) -> Array:
    """Return the adjoint of :func:`convolve` with respect to x."""
    dimensions, inputs = len(windows.size), windows.channels // groups
    rows = _to_rows(d_y, windows, groups) @ _by_group(weight, groups)
    taps = rows.reshape(groups, len(d_y), *windows.output, inputs, *windows.kernel)
    in_order = np.moveaxis(np.moveaxis(taps, 0, 1), 2 + dimensions, 2)
    return windows_into(in_order.reshape(len(d_y), windows.channels, *windows.output, *windows.kernel), windows)


def convolve_weight_gradient(d_y: Array, x: Array, windows: Windows, groups: int) -> Array:
    """Return the adjoint of :func:`convolve` with respect to the weight, as [groups, out / groups, channels / groups * taps]."""
    gradient: Array = _to_rows(d_y, windows, groups).swapaxes(1, 2) @ _rows(x, windows, groups)
    return gradient


def per_channel(values: Array, channels: int) -> Array:
    """Return a view of [B, channels * output] as [B, channels, output]."""
    return values.reshape(len(values), channels, -1)


def _rows(x: Array, windows: Windows, groups: int) -> Array:
    """Return the windows as rows: [groups, B * windows, channels / groups * taps]."""
    view, dimensions = windows_in(x, windows), len(windows.size)
    by_group = view.reshape(len(x), groups, windows.channels // groups, *view.shape[2:])
    rows = np.moveaxis(np.moveaxis(by_group, 0, 1), 2, 2 + dimensions)
    return rows.reshape(groups, len(x) * math.prod(windows.output), -1)


def _by_group(weight: Array, groups: int) -> Array:
    """Return a view of the weight as [groups, out / groups, channels / groups * taps]."""
    return weight.reshape(groups, len(weight) // groups, -1)


def _to_rows(y: Array, windows: Windows, groups: int) -> Array:
    """Return [B, out * output] as [groups, B * windows, out / groups]."""
    count = math.prod(windows.output)
    return y.reshape(len(y), groups, -1, count).transpose(1, 0, 3, 2).reshape(groups, len(y) * count, -1)


def _from_rows(rows: Array, batch: int) -> Array:
    groups, _, outputs = rows.shape
    return rows.reshape(groups, batch, -1, outputs).transpose(1, 0, 3, 2).reshape(batch, -1)
