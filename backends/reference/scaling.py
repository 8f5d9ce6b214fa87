"""Elementwise products with broadcasting, slices, and zero padding; not loss scaling."""

from __future__ import annotations

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.compiler.ir.graph import Shape


def rescale(x: Array, weight: Array, shape: Shape) -> Array:
    """Return ``weight * x``; `x` is [B, *shape], flattened, and `weight` broadcasts to `shape`."""
    return (x.reshape(len(x), *shape) * weight).reshape(len(x), -1)


def sum_to(values: Array, shape: Shape, wanted: Shape) -> Array:
    """Sum values [B, *shape], flattened, over the batch and over the axes along which `wanted` is broadcast to `shape`."""
    total: Array = values.sum(axis=0).reshape(shape)
    ahead = len(shape) - len(wanted)
    axes = tuple(i for i in range(len(shape)) if i < ahead or wanted[i - ahead] == 1)
    return np.asarray(total.sum(axis=axes)).reshape(wanted)


def cut(x: Array, shape: Shape, axis: int, start: int, stop: int) -> Array:
    """Return a view of the slice ``start:stop`` along `axis` of x [B, *shape], which is given flattened; the view keeps all axes."""
    return x.reshape(len(x), *shape)[(slice(None),) * (axis + 1) + (slice(start, stop),)]


def inside(x: Array, shape: Shape, padding: tuple[tuple[int, int], ...]) -> Array:
    """Return a view of the values inside `padding`, [B, *shape]; x is [B, padded shape], given flattened."""
    padded = tuple(before + n + after for n, (before, after) in zip(shape, padding, strict=True))
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(shape, padding, strict=True))
    return x.reshape(len(x), *padded)[(slice(None), *inner)]
