"""Pooling of windows, reduction of axes, and their adjoints."""

from __future__ import annotations

import functools
import math

import numpy as np

from snnc.backends.reference.convolution import windows_in, windows_into
from snnc.backends.runtime.engine import Array
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.graph import PoolKind, ReduceKind, Shape


def pool(x: Array, windows: Windows, kind: PoolKind, count_padding: bool) -> Array:
    """Pool [B, channels * size]; the result is [B, channels * output]."""
    taps = _taps(x, windows, kind)
    pooled: Array = taps.max(axis=-1) if kind == "max" else _summed(taps)
    if kind == "average":
        pooled = pooled / _divisors(windows, count_padding, x)
    return pooled.reshape(len(x), -1)


def pool_gradient(d_y: Array, x: Array, windows: Windows, kind: PoolKind, count_padding: bool) -> Array:
    """Return the adjoint of :func:`pool` at `x`; for a maximum, the first of equal values receives it."""
    adjoint = d_y.reshape(len(d_y), windows.channels, *windows.output)
    if kind == "average":
        adjoint = adjoint / _divisors(windows, count_padding, x)
    taps = math.prod(windows.kernel)
    shares = np.ones(taps, bool) if kind != "max" else _first_maximum(_taps(x, windows, kind))
    of_taps = (adjoint[..., None] * shares).astype(d_y.dtype, copy=False)
    return windows_into(of_taps.reshape(*adjoint.shape, *windows.kernel), windows)


def _taps(x: Array, windows: Windows, kind: PoolKind) -> Array:
    """Return the values in each window: [B, channels, *output, taps]."""
    view = windows_in(x, windows, -np.inf if kind == "max" else 0.0)
    return view.reshape(*view.shape[: 2 + len(windows.size)], -1)


def _summed(values: Array) -> Array:
    """Sum the last axis in ascending order of the index, as emitted programs do; ``numpy.sum`` uses another order."""
    total: Array = functools.reduce(np.add, np.moveaxis(values, -1, 0))
    return total


def _divisors(windows: Windows, count_padding: bool, like: Array) -> Array:
    """Return the number of values in each window, [*output], with the type of `like`."""
    return functools.reduce(np.multiply.outer, windows.taps_inside(count_padding)).astype(like.dtype)


def _first_maximum(values: Array) -> Array:
    """Return a Boolean array that is true at the first maximum along the last axis."""
    first: Array = np.arange(values.shape[-1]) == values.argmax(axis=-1)[..., None]
    return first


def reduce(x: Array, shape: Shape, axes: tuple[int, ...], kind: ReduceKind) -> Array:
    """Return the sum, mean or maximum over `axes` of x [B, *shape], which is given flattened; the result is [B, rest]."""
    values = _outer_and_reduced(x, shape, axes)
    reduced: Array = values.max(axis=-1) if kind == "max" else _summed(values)
    return reduced / values.shape[-1] if kind == "mean" else reduced


def reduce_gradient(d_y: Array, x: Array, shape: Shape, axes: tuple[int, ...], kind: ReduceKind) -> Array:
    """Return the adjoint of :func:`reduce` at `x`; for a maximum, the first of equal values receives it."""
    values = _outer_and_reduced(x, shape, axes)
    shares = _first_maximum(values) if kind == "max" else np.ones(values.shape[-1], bool)
    adjoint = d_y[..., None] * shares / (values.shape[-1] if kind == "mean" else 1)
    order = _reduced_last(shape, axes)
    unfolded = adjoint.reshape(len(x), *(shape[i] for i in order))
    return unfolded.transpose(0, *(np.argsort(order) + 1)).reshape(len(x), -1)


def _outer_and_reduced(x: Array, shape: Shape, axes: tuple[int, ...]) -> Array:
    """Return the values as [B, rest, reduced], where the last axis contains the values of all reduced axes."""
    turned = x.reshape(len(x), *shape).transpose(0, *(i + 1 for i in _reduced_last(shape, axes)))
    return turned.reshape(len(x), -1, math.prod(shape[i] for i in axes))


def _reduced_last(shape: Shape, axes: tuple[int, ...]) -> list[int]:
    return [*(i for i in range(len(shape)) if i not in axes), *axes]
