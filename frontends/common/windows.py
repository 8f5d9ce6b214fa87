"""Convolution and pooling in NumPy: numbers of windows, and results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.graph import Array, Shape

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""Padding before and after, by dimension."""


def counts(size: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, ceil: bool = False) -> Shape:
    """Return the number of windows in each dimension; with `ceil`, the last window may extend beyond the padded input, but starts inside.

    A ValueError means that no window fits, or that a setting is out of range.
    """
    if min((*kernel, *stride, *dilation), default=1) < 1 or min((p for pair in padding for p in pair), default=0) < 0:
        raise ValueError(
            f"windows of {list(kernel)} have strides {list(stride)}, dilations {list(dilation)} and pads {list(padding)}; sizes, strides "
            "and dilations must be 1 or more, pads 0 or more."
        )
    output = Windows(1, size, kernel, stride, padding, dilation, ceil).output
    if min(output, default=1) < 1:
        raise ValueError(f"no window {list(kernel)} of a convolution or pooling fits into {list(size)} with pads {list(padding)}.")
    return output


def convolve(x: Array, weight: Array, bias: Array | None, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> Array:
    """Return the cross-correlation of `x` [batch, channels, *size] with `weight` [out, channels / groups, *kernel]."""
    size, kernel = x.shape[2:], weight.shape[2:]
    output = counts(size, kernel, stride, padding, dilation)
    parts = x.reshape(x.shape[0], groups, -1, *size)
    out = weight.shape[0] // groups
    taps = np.stack(list(_taps(parts, 3, kernel, stride, padding, dilation, output, 0.0)), 3)
    columns = taps.reshape(x.shape[0], groups, -1, math.prod(output))
    product = weight.reshape(groups, out, -1) @ columns
    y = product.reshape(x.shape[0], weight.shape[0], *output)
    return y if bias is None else np.asarray(y + bias.reshape(-1, *(1,) * len(size)))


def pool(x: Array, kind: str, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, ceil: bool, count_padding: bool) -> Array:
    """Return the "average", "sum" or "max" of the windows of `x` [batch, channels, *size]."""
    size = x.shape[2:]
    output = counts(size, kernel, stride, padding, dilation, ceil)
    if kind == "max":
        return np.asarray(np.maximum.reduce(list(_taps(x, 2, kernel, stride, padding, dilation, output, -np.inf))))
    total = np.add.reduce(list(_taps(x, 2, kernel, stride, padding, dilation, output, 0.0)))
    if kind == "sum":
        return np.asarray(total)
    inside = Windows(1, size, kernel, stride, padding, dilation, ceil).taps_inside(count_padding)
    return np.asarray(total / reduce(np.multiply.outer, inside))


def _taps(
    x: Array, first: int, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, output: Shape, fill: float
) -> Iterator[Array]:
    """Yield what all windows read at each kernel position; axes from `first` on are spatial, and `output` are the numbers of windows."""
    size = x.shape[first:]
    # number of padded values that the last window reads after the end of each dimension
    extra = [
        max(0, (c - 1) * s + (k - 1) * d + 1 - n - a)
        for c, s, k, d, n, (a, _) in zip(output, stride, kernel, dilation, size, padding, strict=True)
    ]
    if any(extra) or any(a for a, _ in padding):
        x = np.pad(x, [(0, 0)] * first + [(a, e) for (a, _), e in zip(padding, extra, strict=True)], constant_values=fill)
    for position in np.ndindex(*kernel):
        index = tuple(slice(p * d, p * d + (c - 1) * s + 1, s) for p, d, c, s in zip(position, dilation, output, stride, strict=True))
        yield x[(slice(None),) * first + index]
