"""Products with arrays that are broadcast, slices, and zeros around values."""

from __future__ import annotations

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.compiler.ir.graph import Shape


def rescale(x: Array, weight: Array, shape: Shape) -> Array:
    """``weight * x`` where `x` is [B, *shape], flattened, and `weight` broadcasts to `shape`."""
    return (x.reshape(len(x), *shape) * weight).reshape(len(x), -1)


def sum_to(values: Array, shape: Shape, wanted: Shape) -> Array:
    """Sum [B, *shape], flattened, over the batch and over the axes along which an array of shape `wanted` is broadcast to `shape`."""
    total: Array = values.sum(axis=0).reshape(shape)
    ahead = len(shape) - len(wanted)
    axes = tuple(i for i in range(len(shape)) if i < ahead or wanted[i - ahead] == 1)
    return np.asarray(total.sum(axis=axes)).reshape(wanted)


def cut(x: Array, shape: Shape, axis: int, start: int, stop: int) -> Array:
    """View the values ``start <= i < stop`` along `axis` of [B, *shape], which is given flattened; as [B, …] of several axes."""
    return x.reshape(len(x), *shape)[(slice(None),) * (axis + 1) + (slice(start, stop),)]


def inside(x: Array, shape: Shape, padding: tuple[tuple[int, int], ...]) -> Array:
    """View the values inside `padding` around `shape` of [B, padded shape], which is given flattened; as [B, *shape]."""
    padded = tuple(before + n + after for n, (before, after) in zip(shape, padding, strict=True))
    some = tuple(slice(before, before + n) for n, (before, _) in zip(shape, padding, strict=True))
    return x.reshape(len(x), *padded)[(slice(None), *some)]
