"""Handlers of operators that pad, enlarge or rearrange axes (Pad, Resize, DepthToSpace, SpaceToDepth, ConvTranspose), and of CumSum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from snnc.frontends.onnx.errors import MalformedGraphError, NotYetError, OnnxLimitError, ShapeError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, Array, Node, NodePool, check_size

_MAX_PIECES: Final = 4096
"""Maximum number of slices into which one operator divides an axis."""


def gather(pool: NodePool, x: Node, axis: int, index: Array) -> Node:
    """Return the entries `index` of an axis; each run of consecutive indices is one slice."""
    ends = [0, *(np.flatnonzero(np.diff(index) != 1) + 1).tolist(), len(index)]
    if len(ends) - 1 > _MAX_PIECES:
        raise OnnxLimitError(f"{len(ends) - 1} separate pieces of an axis of {x.shape[axis]} are joined; snnc reads at most {_MAX_PIECES}.")
    parts = tuple(shaping.slice_axis(pool, x, axis, int(index[a]), b - a) for a, b in pairwise(ends))
    return shaping.concat(pool, parts, axis)


def pad(pool: NodePool, x: Node, axis: int, before: int, after: int, value: float = 0.0) -> Node:
    """Return `x` padded with constants along one axis."""
    parts = [x]
    for place, count in ((0, before), (2, after)):
        if count:
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            check_size(shape, "a padding", MAX_CONSTANT)
            parts.insert(place, pool.const(np.full(shape, value, np.float32)))
    return shaping.concat(pool, tuple(parts), axis)


def _pad(call: OperatorCall) -> list[Value]:
    x, mode = call.node(0), str(call.attribute("mode", "constant"))
    rank = len(x.shape)
    pads = call.ints(1, "pads")
    axes = tuple(call.axis(a, rank) for a in call.ints(3, "axes")) if call.has(3) else tuple(range(rank))
    if len(pads) != 2 * len(axes):
        raise MalformedGraphError(f"{call.where}: {len(pads)} pads for {len(axes)} axes; there must be two per axis.")
    value = float(call.array(2, "constant").reshape(-1)[0]) if call.has(2) else 0.0
    for k, axis in enumerate(axes):
        before, after = pads[k], pads[k + len(axes)]
        x = _cropped(call, x, axis, before, after)
        before, after = max(0, before), max(0, after)
        if not before and not after:
            continue
        check_size((before + x.shape[axis] + after,), call.where, MAX_CONSTANT)
        if mode == "constant":
            x = pad(call.pool, x, axis, before, after, value)
        else:
            x = gather(call.pool, x, axis, _padded_index(call, mode, x.shape[axis], before, after))
    return [x]


def _cropped(call: OperatorCall, x: Node, axis: int, before: int, after: int) -> Node:
    """Return `x` without the entries that negative pads remove."""
    low, high = max(0, -before), x.shape[axis] - max(0, -after)
    if high <= low:
        raise ShapeError(f"{call.where}: pads of {before} and {after} leave nothing of axis {axis} of {list(x.shape)}.")
    return shaping.slice_axis(call.pool, x, axis, low, high - low)


def _padded_index(call: OperatorCall, mode: str, size: int, before: int, after: int) -> Array:
    """Return, for each entry of the padded axis, the index of the entry that it repeats."""
    place = np.arange(-before, size + after)
    match mode:
        case "edge":
            return place.clip(0, size - 1)
        case "wrap":
            return np.asarray(place % size)
        case "reflect" if max(before, after) < size:
            return np.asarray(size - 1 - np.abs(size - 1 - np.abs(place)))
        case "reflect":
            raise ShapeError(f"{call.where}: it reflects {max(before, after)} of {size} entries; at most {size - 1} can be reflected.")
    raise MalformedGraphError(f"{call.where}: its attribute 'mode' is {mode!r}.")


def _depth_to_space(call: OperatorCall) -> list[Value]:
    x, b = call.node(0), call.integer("blocksize")
    n, c, *size = x.shape
    if len(size) != 2 or b < 1 or c % (b * b):
        raise ShapeError(f"{call.where}: blocks of {b} do not fit a value of shape {list(x.shape)}.")
    h, w = size
    depth_first = call.attribute("mode", "DCR") == "DCR"
    inner = (n, b, b, c // (b * b), h, w) if depth_first else (n, c // (b * b), b, b, h, w)
    order = (0, 3, 4, 1, 5, 2) if depth_first else (0, 1, 4, 2, 5, 3)
    moved = shaping.transpose(call.pool, shaping.reshape(call.pool, x, inner), order)
    return [shaping.reshape(call.pool, moved, (n, c // (b * b), h * b, w * b))]


def _space_to_depth(call: OperatorCall) -> list[Value]:
    x, b = call.node(0), call.integer("blocksize")
    n, c, *size = x.shape
    if len(size) != 2 or b < 1 or size[0] % b or size[1] % b:
        raise ShapeError(f"{call.where}: blocks of {b} do not fit a value of shape {list(x.shape)}.")
    h, w = size
    split = shaping.reshape(call.pool, x, (n, c, h // b, b, w // b, b))
    return [shaping.reshape(call.pool, shaping.transpose(call.pool, split, (0, 3, 5, 1, 2, 4)), (n, c * b * b, h // b, w // b))]


def _resize(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    mode = str(call.attribute("mode", "nearest"))
    rank = len(x.shape)
    listed = call.attribute("axes")
    axes = tuple(call.axis(a, rank) for a in listed) if isinstance(listed, tuple) else tuple(range(rank))
    if call.has(3):
        sizes = call.ints(3, "sizes")
        scales = [s / x.shape[a] for s, a in zip(sizes, axes, strict=True)]
    else:
        scales = [float(s) for s in call.array(2, "scales").reshape(-1)] if call.has(2) else []
        if len(scales) != len(axes):
            raise MalformedGraphError(f"{call.where}: {len(scales)} scales for {len(axes)} axes; there must be one per axis.")
        sizes = tuple(math.floor(x.shape[a] * s) for a, s in zip(axes, scales, strict=True))
    if min(sizes, default=1) < 1:
        raise ShapeError(f"{call.where}: the sizes {list(sizes)} must be 1 or more.")
    if mode not in ("nearest", "linear") or call.flag("antialias"):
        raise NotYetError(f"{call.where}: Resize by '{mode}' is not supported yet; snnc reads 'nearest' and 'linear' without antialiasing.")
    for axis, size, scale in zip(axes, sizes, scales, strict=True):
        if size != x.shape[axis] or scale != 1.0:
            check_size((*x.shape[:axis], size, *x.shape[axis + 1 :]), call.where)
            positions = _positions(call, x.shape[axis], size, scale)
            x = _nearest(call, x, axis, positions) if mode == "nearest" else _interpolated(call, x, axis, positions)
    return [x]


def _positions(call: OperatorCall, old: int, new: int, scale: float) -> Array:
    """Return the position of each new entry on the old axis."""
    k = np.arange(new, dtype=np.float64)
    mode = call.attribute("coordinate_transformation_mode", "half_pixel")
    match mode:
        case "pytorch_half_pixel" if new == 1:
            return np.zeros(1)
        case "half_pixel" | "pytorch_half_pixel":
            return np.asarray((k + 0.5) / scale - 0.5)
        case "align_corners":
            return k * (old - 1) / (new - 1) if new > 1 else np.zeros(1)
        case "asymmetric":
            return k / scale
    raise NotYetError(f"{call.where}: Resize with coordinates '{mode}' is not supported yet.")


def _nearest(call: OperatorCall, x: Node, axis: int, positions: Array) -> Node:
    """Return the entries of an axis that are nearest to `positions`."""
    match mode := call.attribute("nearest_mode", "round_prefer_floor"):
        case "floor":
            index = np.floor(positions)
        case "ceil":
            index = np.ceil(positions)
        case "round_prefer_floor":
            index = np.ceil(positions - 0.5)
        case "round_prefer_ceil":
            index = np.floor(positions + 0.5)
        case _:
            raise MalformedGraphError(f"{call.where}: its attribute 'nearest_mode' is {mode!r}.")
    return gather(call.pool, x, axis, index.clip(0, x.shape[axis] - 1).astype(np.int64))


def _interpolated(call: OperatorCall, x: Node, axis: int, positions: Array) -> Node:
    """Return `x` interpolated linearly at `positions` of an axis, as a product with a constant matrix."""
    size = x.shape[axis]
    check_size((len(positions), size), call.where, MAX_CONSTANT)
    low = np.floor(positions)
    share = positions - low
    weight = np.zeros((len(positions), size), np.float64)
    rows = np.arange(len(positions))
    for at, factor in ((low, 1 - share), (low + 1, share)):
        np.add.at(weight, (rows, at.clip(0, size - 1).astype(np.int64)), factor)
    last = tuple(k for k in range(len(x.shape)) if k != axis)
    back = tuple(int(k) for k in np.argsort((*last, axis)))
    product = shaping.linear(call.pool, shaping.transpose(call.pool, x, (*last, axis)), call.pool.const(weight.astype(np.float32)))
    return shaping.transpose(call.pool, product, back)


def _conv_transpose(call: OperatorCall) -> list[Value]:
    """Convert a transposed convolution to a convolution of its input with zeros inserted between the values."""
    x, weight = call.node(0), call.node(1)
    bias = call.node(2) if call.has(2) else None
    if weight.value is None or (bias is not None and bias.value is None):
        raise UnsupportedOperatorError(f"{call.where}: snnc reads transposed convolutions with constant weights.")
    kernel, ones = weight.shape[2:], (1,) * len(weight.shape[2:])
    if len(x.shape) != len(kernel) + 2 or not kernel:
        raise ShapeError(f"{call.where}: a kernel of {list(kernel)} does not fit a value of shape {list(x.shape)}.")
    if call.attribute("auto_pad", "NOTSET") not in ("NOTSET", "", "VALID") or call.attribute("output_shape") is not None:
        raise NotYetError(f"{call.where}: ConvTranspose with 'auto_pad' or 'output_shape' is not supported yet; use 'pads'.")
    stride, dilation, extra = (
        call.numbers(n, d) for n, d in (("strides", ones), ("dilations", ones), ("output_padding", (0,) * len(kernel)))
    )
    pads = call.numbers("pads", (0,) * (2 * len(kernel)))
    if min((*stride, *dilation)) < 1 or min((*pads, *extra)) < 0:
        raise MalformedGraphError(f"{call.where}: strides and dilations must be 1 or more, pads 0 or more.")
    groups = call.integer("group", 1)
    if groups < 1 or weight.shape[0] % groups or x.shape[1] != weight.shape[0]:
        raise ShapeError(f"{call.where}: {x.shape[1]} channels, a weight of {list(weight.shape)} and {groups} group(s) do not fit.")
    for k, s in enumerate(stride):
        x = _insert_zeros(call.pool, x, k + 2, s)
    for k, (n, d, e) in enumerate(zip(kernel, dilation, extra, strict=True)):
        reach = (n - 1) * d
        before, after = reach - pads[k], reach - pads[k + len(kernel)] + e
        x = pad(call.pool, _cropped(call, x, k + 2, before, after), k + 2, max(0, before), max(0, after))
    flipped = weight.value.reshape(groups, weight.shape[0] // groups, *weight.shape[1:]).swapaxes(1, 2)
    flipped = np.flip(flipped, tuple(range(3, flipped.ndim))).reshape(groups * weight.shape[1], weight.shape[0] // groups, *kernel)
    kernels = call.pool.const(np.ascontiguousarray(flipped))
    return [shaping.convolution(call.pool, x, kernels, bias, ones, ((0, 0),) * len(kernel), dilation, groups)]


def _insert_zeros(pool: NodePool, x: Node, axis: int, stride: int) -> Node:
    """Return `x` with ``stride - 1`` zeros between the values of an axis."""
    if stride == 1:
        return x
    size = x.shape[axis]
    check_size((*x.shape[:axis], size * stride, *x.shape[axis + 1 :]), "the input of a transposed convolution")
    column = shaping.reshape(pool, x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    spread = shaping.reshape(pool, pad(pool, column, axis + 1, 0, stride - 1), (*x.shape[:axis], size * stride, *x.shape[axis + 1 :]))
    return shaping.slice_axis(pool, spread, axis, 0, (size - 1) * stride + 1)


def _cumulative(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    axis = call.axis(call.ints(1, "axis")[0], len(x.shape))
    if call.flag("reverse") or call.flag("exclusive"):
        raise NotYetError(f"{call.where}: snnc reads CumSum without 'reverse' and 'exclusive'.")
    if x.shape[axis] > _MAX_PIECES:
        raise OnnxLimitError(f"{call.where}: it adds up {x.shape[axis]} entries; snnc reads at most {_MAX_PIECES}.")
    parts = [shaping.slice_axis(call.pool, x, axis, 0, 1)]
    for k in range(1, x.shape[axis]):
        parts.append(call.elementwise("add", parts[-1], shaping.slice_axis(call.pool, x, axis, k, 1)))
    return [shaping.concat(call.pool, tuple(parts), axis)]


HANDLERS: Final[Mapping[str, Handler]] = {
    "Pad": _pad,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Resize": _resize,
    "ConvTranspose": _conv_transpose,
    "CumSum": _cumulative,
}
