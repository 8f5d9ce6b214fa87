"""Operators that write a block into a tensor, exported from ``outputs[t] = y`` and ``outputs[:, t] = y``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.frontends.onnx.errors import ShapeError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import Array, Node


def _scatter_nd(call: OperatorCall) -> list[Value]:
    x, updates, index = call.node(0), call.node(2), _index(call)
    if index.ndim < 1 or not index.size or index.shape[-1] > len(x.shape):
        raise ShapeError(f"{call.where}: an index of shape {list(index.shape)} into {list(x.shape)}.")
    depth = index.shape[-1]
    points = index.reshape(-1, depth)
    _check_range(call, points, x.shape[:depth])
    points = points % np.array(x.shape[:depth])
    low = points.min(0)
    size = points.max(0) - low + 1
    partial = [k for k in range(depth) if size[k] != x.shape[k]]
    ordered = len(points) == size.prod() and (points == np.indices(size).reshape(depth, -1).T + low).all()
    if not ordered or len(partial) > 1:
        raise _scattered(call)
    return [_put(call, x, updates, (*map(int, size), *x.shape[depth:]), partial[0] if partial else 0, low)]


def _scatter_elements(call: OperatorCall) -> list[Value]:
    x, updates, index = call.node(0), call.node(2), _index(call)
    axis = call.integer("axis") % max(1, len(x.shape))
    if index.ndim != len(x.shape) or not index.size:
        raise ShapeError(f"{call.where}: an index of shape {list(index.shape)} into {list(x.shape)}.")
    _check_range(call, index, (x.shape[axis],))
    index = index % x.shape[axis]
    line = tuple(slice(None) if k == axis else slice(0, 1) for k in range(index.ndim))
    first = index[line]
    rows = first.reshape(-1)
    beside = all(n == d for k, (n, d) in enumerate(zip(index.shape, x.shape, strict=True)) if k != axis)
    if not beside or (index != first).any() or (np.diff(rows) != 1).any():
        raise _scattered(call)
    low = np.zeros(index.ndim, np.int64)
    low[axis] = rows[0]
    return [_put(call, x, updates, index.shape, axis, low)]


def _index(call: OperatorCall) -> Array:
    if call.attribute("reduction", "none") not in ("none", b"none"):
        raise UnsupportedOperatorError(f"{call.where}: a scatter that adds to what is there is not read; use an addition.")
    return call.array(1, "index").astype(np.int64)


def _check_range(call: OperatorCall, index: Array, sizes: tuple[int, ...]) -> None:
    limits = np.array(sizes)
    if (index < -limits).any() or (index >= limits).any():
        raise ShapeError(f"{call.where}: it writes outside of the {list(sizes)} entries that there are.")


def _scattered(call: OperatorCall) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        f"{call.where}: it writes to scattered places; snnc reads neighbouring entries of one axis (outputs[t] = y). "
        "Collect the values in a list and stack them."
    )


def _put(call: OperatorCall, x: Node, updates: Node, box: tuple[int, ...], axis: int, low: Array) -> Node:
    return shaping.put(call.pool, x, shaping.reshape(call.pool, updates, box), axis, int(low[axis]))


HANDLERS: Final[Mapping[str, Handler]] = {"ScatterND": _scatter_nd, "ScatterElements": _scatter_elements}
