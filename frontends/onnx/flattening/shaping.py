"""Create nodes of a flattened graph, with slices pushed towards the inputs.

A slice of an elementwise operation becomes the operation on slices of its operands, a slice of a concatenation becomes the operand that
it selects, and so on. A layer that runs once over the whole sequence thus becomes one that runs at every step.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.arrays.windows import DIMENSIONS
from snnc.frontends.common import windows
from snnc.frontends.common.functions import COMPARISONS, ELEMENTWISE, apply, reduce_over
from snnc.frontends.common.windows import Pairs
from snnc.frontends.onnx.errors import NotYetError, ShapeError
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, Array, Node, NodePool, Shape, check_size

_MAX_PUSH: Final = 150
"""Maximum number of operations through which a slice is pushed."""


def elementwise(pool: NodePool, op: str, *inputs: Node) -> Node:
    """Return the node of ``op(*inputs)`` with NumPy broadcasting.

    If all inputs are constant, the node has a value; it also keeps `op` if that is a comparison or the value is floating-point.
    Shapes that do not broadcast raise a ShapeError.
    """
    shape = _broadcast([n.shape for n in inputs], op)
    if any(n.value is None for n in inputs):
        return pool.make(op, inputs, shape)
    known = pool.find(op, inputs, shape)
    if known is not None:
        return known
    check_size(shape, f"the constant result of '{op}'", MAX_CONSTANT)
    value = apply(op, *(n.value for n in inputs if n.value is not None))
    if value.dtype.kind in "ib" and op not in COMPARISONS:
        return pool.const(value)
    return pool.make(op, inputs, shape, value=value)


def _broadcast(shapes: list[Shape], op: str) -> Shape:
    if all(s == shapes[0] for s in shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(s)) for s in shapes)
        raise ShapeError(f"the operands of '{op}' have the shapes {listed}, which cannot be broadcast together.") from None


def reshape(pool: NodePool, x: Node, shape: Shape) -> Node:
    """Return `x` reshaped to `shape`; a different number of elements raises a ShapeError."""
    if math.prod(shape) != math.prod(x.shape):
        raise ShapeError(f"a value of shape {list(x.shape)} cannot be reshaped to {list(shape)}.")
    if x.shape == shape:
        return x
    if x.op == "reshape":
        return reshape(pool, x.inputs[0], shape)
    if x.op == "const":
        return pool.const(np.asarray(x.value).reshape(shape))
    return pool.make("reshape", (x,), shape, value=None if x.value is None else x.value.reshape(shape))


def drop_axis(pool: NodePool, x: Node, axis: int) -> Node:
    """Return `x` without an axis of size 1."""
    return reshape(pool, x, x.shape[:axis] + x.shape[axis + 1 :])


def at_index(pool: NodePool, x: Node, axis: int, index: int) -> Node:
    """Return `x` at an index of `axis`, without that axis."""
    return drop_axis(pool, slice_axis(pool, x, axis, index, 1), axis)


def concat(pool: NodePool, parts: tuple[Node, ...], axis: int) -> Node:
    """Return the concatenation of `parts`; shapes that differ in other axes than `axis` raise a ShapeError."""
    rest = {p.shape[:axis] + p.shape[axis + 1 :] for p in parts}
    if len(rest) != 1:
        raise ShapeError(f"Concat on axis {axis} of the shapes {[list(p.shape) for p in parts][:6]}: they differ on other axes.")
    if len(parts) == 1:
        return parts[0]
    size = sum(p.shape[axis] for p in parts)
    shape = (*parts[0].shape[:axis], size, *parts[0].shape[axis + 1 :])
    check_size(shape, "the result of Concat")
    if all(p.value is not None for p in parts):
        return pool.const(np.concatenate([p.value for p in parts if p.value is not None], axis))
    equal = len({p.shape[axis] for p in parts}) == 1
    return pool.make("concat", parts, shape, (axis, equal))


def transpose(pool: NodePool, x: Node, order: tuple[int, ...]) -> Node:
    """Return `x` with its axes in the given order."""
    if order == tuple(range(len(order))):
        return x
    if x.value is not None:
        return pool.const(x.value.transpose(order))
    if x.op == "transpose":
        return transpose(pool, x.inputs[0], tuple(x.attrs[k] for k in order))
    return pool.make("transpose", (x,), tuple(x.shape[k] for k in order), order)


def expand(pool: NodePool, x: Node, shape: Shape) -> Node:
    """Return `x` broadcast with `shape`, as ONNX's Expand does: where `shape` has size 1, `x` keeps its size.

    Shapes that do not broadcast raise a ShapeError.
    """
    try:
        shape = np.broadcast_shapes(x.shape, shape)
    except ValueError:
        raise ShapeError(f"a value of shape {list(x.shape)} cannot be expanded to {list(shape)}.") from None
    if shape == x.shape:
        return x
    check_size(shape, "the result of Expand")
    if x.value is not None:
        check_size(shape, "the constant result of Expand", MAX_CONSTANT)
        return pool.const(np.broadcast_to(x.value, shape))
    return pool.make("expand", (x,), shape)


def write_slice(pool: NodePool, base: Node, value: Node, axis: int, start: int) -> Node:
    """Return `base` with `value` written at index `start` of `axis`."""
    if value.shape == base.shape:
        return value
    return pool.make("write_slice", (base, value), base.shape, (axis, start))


def reduce(pool: NodePool, x: Node, kind: str, axes: tuple[int, ...], keep: bool) -> Node:
    """Return the "sum", "mean", "max" or "min" of `x` over `axes`, which remain with size 1 if `keep`."""
    kept_shape = tuple(1 if k in axes else d for k, d in enumerate(x.shape))
    shape = kept_shape if keep else tuple(d for k, d in enumerate(x.shape) if k not in axes)
    if x.value is not None:
        return pool.const(reduce_over(kind, x.value, axes).reshape(shape).astype(x.value.dtype))
    return reshape(pool, pool.make("reduce", (x,), kept_shape, (kind, axes)), shape)


def slice_axis(pool: NodePool, x: Node, axis: int, start: int, size: int, depth: int = 0) -> Node:
    """Return ``x[start:start+size]`` along `axis`, pushed towards the inputs through up to `_MAX_PUSH` operations."""
    if start == 0 and size == x.shape[axis]:
        return x
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    if x.value is not None:
        index = (slice(None),) * axis + (slice(start, start + size),)
        return pool.const(x.value[index])
    key = (x.id, axis, start, size)
    known = pool.slices.get(key)
    if known is None:
        pushed = _push(pool, x, axis, start, size, depth + 1) if depth <= _MAX_PUSH else None
        known = pool.slices[key] = pool.make("slice", (x,), shape, (axis, start)) if pushed is None else pushed
    return known


def _push(pool: NodePool, x: Node, axis: int, start: int, size: int, depth: int) -> Node | None:
    """Return a slice of `x` as the operation of `x` on slices of its operands; None if that is impossible."""
    if x.op in ELEMENTWISE:
        return elementwise(pool, x.op, *(_operand(pool, n, len(x.shape), axis, start, size, depth) for n in x.inputs))
    match x.op:
        case "linear" if axis < len(x.shape) - 1:
            return linear(pool, slice_axis(pool, x.inputs[0], axis, start, size, depth), *x.inputs[1:])
        case "linear":
            return linear(pool, x.inputs[0], *(slice_axis(pool, n, 0, start, size, depth) for n in x.inputs[1:]))
        case "conv" | "pool":
            return _push_window(pool, x, axis, start, size, depth)
        case "reshape":
            return _push_reshape(pool, x, axis, start, size, depth)
        case "concat":
            return _push_concat(pool, x, axis, start, size, depth)
        case "write_slice":
            return _push_write_slice(pool, x, axis, start, size, depth)
        case "transpose":
            return transpose(pool, slice_axis(pool, x.inputs[0], x.attrs[axis], start, size, depth), x.attrs)
        case "expand":
            inner = _operand(pool, x.inputs[0], len(x.shape), axis, start, size, depth)
            return expand(pool, inner, (*x.shape[:axis], size, *x.shape[axis + 1 :]))
        case "reduce":
            kind, axes = x.attrs
            return None if axis in axes else reduce(pool, slice_axis(pool, x.inputs[0], axis, start, size, depth), kind, axes, True)
        case "slice" if x.attrs[0] == axis:
            return slice_axis(pool, x.inputs[0], axis, x.attrs[1] + start, size, depth)
        case "slice":
            return _push_slice(pool, x, axis, start, size, depth)
    return None


def _push_slice(pool: NodePool, x: Node, axis: int, start: int, size: int, depth: int) -> Node | None:
    """Exchange the inner slice `x` and an outer one on another axis, `axis`, if that brings the outer one closer to the input.

    An outer slice of one index is also exchanged with a slice of an input if the outer one selects a step or the inner has several indices.
    """
    source = x.inputs[0]
    source_axis, source_start = x.attrs
    step = source.op == "input" and pool.time_axes.get(source.attrs[0]) == axis
    single = source.op == "input" and size == 1 and (step or x.shape[source_axis] != 1)
    inner = slice_axis(pool, source, axis, start, size, depth)
    if inner.op == "slice" and inner.inputs[0] is source and not single:
        return None
    return slice_axis(pool, inner, source_axis, source_start, x.shape[source_axis], depth)


def _operand(pool: NodePool, n: Node, rank: int, axis: int, start: int, size: int, depth: int) -> Node:
    """Return the part of an operand that a slice of the result along `axis` needs; the operand broadcasts to the result's `rank` axes."""
    source_axis = axis - (rank - len(n.shape))
    if source_axis < 0 or n.shape[source_axis] == 1:
        return n
    return slice_axis(pool, n, source_axis, start, size, depth)


def _push_reshape(pool: NodePool, x: Node, axis: int, start: int, size: int, depth: int) -> Node | None:
    """Return a slice of a reshaped value as a reshaped slice; None if no axis of the source corresponds to `axis`."""
    source = x.inputs[0]
    outer, block = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    target = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    for source_axis in range(len(source.shape)):
        inner = math.prod(source.shape[source_axis + 1 :])
        if math.prod(source.shape[:source_axis]) != outer or not inner or (start * block) % inner or (size * block) % inner:
            continue
        if source.shape[source_axis] * inner == x.shape[axis] * block:
            return reshape(pool, slice_axis(pool, source, source_axis, start * block // inner, size * block // inner, depth), target)
    return None


def _push_concat(pool: NodePool, x: Node, axis: int, start: int, size: int, depth: int) -> Node | None:
    """Return a slice of a concatenation: an operand, a slice of one, or the concatenation of several slices."""
    source_axis, equal = x.attrs
    if source_axis != axis:
        return concat(pool, tuple(slice_axis(pool, p, axis, start, size, depth) for p in x.inputs), source_axis)
    if equal:
        width = x.inputs[0].shape[axis]
        part, offset = divmod(start, width)
        if offset + size <= width:
            return slice_axis(pool, x.inputs[part], axis, offset, size, depth)
    parts: list[Node] = []
    position = 0
    for p in x.inputs:
        low, high = max(start, position), min(start + size, position + p.shape[axis])
        if low < high:
            parts.append(slice_axis(pool, p, axis, low - position, high - low, depth))
        position += p.shape[axis]
    return concat(pool, tuple(parts), axis)


def _push_write_slice(pool: NodePool, x: Node, axis: int, start: int, size: int, depth: int) -> Node | None:
    while x.op == "write_slice" and x.attrs[0] == axis:
        base, value = x.inputs
        at, width = x.attrs[1], value.shape[axis]
        if at <= start and start + size <= at + width:
            return slice_axis(pool, value, axis, start - at, size, depth)
        if start < at + width and at < start + size:
            return None
        x = base
    return None if x.op == "write_slice" else slice_axis(pool, x, axis, start, size, depth)


def linear(pool: NodePool, x: Node, weight: Node, bias: Node | None = None) -> Node:
    """Return ``x @ weight.T + bias`` over the last axis; weight [outputs, inputs] and bias are constants.

    Sizes that differ raise a ShapeError.
    """
    if not x.shape or x.shape[-1] != weight.shape[1] or (bias is not None and bias.shape != weight.shape[:1]):
        has = f", bias {list(bias.shape)}" if bias is not None else ""
        raise ShapeError(f"a matrix product of {list(x.shape)} with a weight {list(weight.shape)} (outputs, inputs){has}: sizes differ.")
    return _layer(pool, "linear", x, weight, bias, x.shape[:-1] + weight.shape[:1], (), "a matrix product")


def _layer(pool: NodePool, op: str, x: Node, weight: Node, bias: Node | None, shape: Shape, attrs: tuple[Any, ...], what: str) -> Node:
    """Return the node of a layer with constant weights, evaluated if `x` is constant, too."""
    check_size(shape, f"the result of {what}")
    inputs = (x, weight) if bias is None else (x, weight, bias)
    if x.value is None:
        return pool.make(op, inputs, shape, attrs)
    check_size(shape, f"the constant result of {what}", MAX_CONSTANT)
    return pool.make(op, inputs, shape, attrs, evaluate_layer(op, attrs, [n.value for n in inputs if n.value is not None]))


def evaluate_layer(op: str, attrs: tuple[Any, ...], arrays: list[Array]) -> Array:
    """Evaluate a "linear", "conv" or "pool"."""
    if op == "pool":
        return windows.pool(arrays[0], *attrs)
    x, weight, *rest = arrays
    bias = rest[0] if rest else None
    if op == "conv":
        return windows.convolve(x, weight, bias, *attrs)
    product = x @ weight.T
    return product if bias is None else product + bias


# ---- convolution and pooling -----------------------------------------------------------------------------------------


def _check_rank(x: Node, kernel: Shape, what: str) -> None:
    if len(x.shape) != len(kernel) + 2:
        raise ShapeError(f"{what} with a kernel of {len(kernel)} dimensions reads a value of shape {list(x.shape)}.")
    if len(kernel) not in DIMENSIONS:
        raise NotYetError(f"{what} over {len(kernel)} dimensions is not supported yet; snnc reads 1 and 2.")


def convolution(
    pool: NodePool, x: Node, weight: Node, bias: Node | None, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Node:
    """Return the convolution of `x` [batch, channels, *size] with a constant weight [out, channels / groups, *kernel].

    Sizes that do not fit raise a ShapeError; a kernel with more than two axes raises a NotYetError.
    """
    kernel = weight.shape[2:]
    _check_rank(x, kernel, "a convolution")
    fits = groups > 0 and x.shape[1] == weight.shape[1] * groups and weight.shape[0] % groups == 0
    if not fits or (bias is not None and bias.shape != weight.shape[:1]):
        raise ShapeError(f"a convolution of {list(x.shape)} with a weight {list(weight.shape)} in {groups} group(s): channels differ.")
    shape = (x.shape[0], weight.shape[0], *_counts(x.shape[2:], kernel, stride, padding, dilation))
    return _layer(pool, "conv", x, weight, bias, shape, (stride, padding, dilation, groups), "a convolution")


def pooling(
    pool: NodePool, x: Node, kind: str, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, ceil: bool, count_padding: bool
) -> Node:
    """Return the "average", "sum" or "max" over windows of `x` [batch, channels, *size]; errors as in :func:`convolution`."""
    _check_rank(x, kernel, "a pooling")
    if any(p >= (k - 1) * d + 1 for k, d, pair in zip(kernel, dilation, padding, strict=True) for p in pair):
        raise ShapeError(f"a pooling with windows of {list(kernel)} has pads {list(padding)}, which must be smaller than the windows.")
    counts = _counts(x.shape[2:], kernel, stride, padding, dilation, ceil)
    attrs = (kind, kernel, stride, padding, dilation, ceil, count_padding)
    value = None if x.value is None else evaluate_layer("pool", attrs, [x.value])
    return pool.make("pool", (x,), (*x.shape[:2], *counts), attrs, value)


def _push_window(pool: NodePool, x: Node, axis: int, start: int, size: int, depth: int) -> Node | None:
    """Return a slice of a convolution or pooling as that operation on a slice; None for spatial axes and grouped channels."""
    source, *weights = x.inputs
    if axis > 1 or (axis == 1 and x.op == "conv" and x.attrs[3] > 1):
        return None
    if axis == 0 or x.op == "pool":
        source = slice_axis(pool, source, axis, start, size, depth)
    else:
        weights = [slice_axis(pool, n, 0, start, size, depth) for n in weights]
    if x.op == "pool":
        return pooling(pool, source, *x.attrs)
    return convolution(pool, source, weights[0], weights[1] if len(weights) > 1 else None, *x.attrs)


def _counts(size: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, ceil: bool = False) -> Shape:
    try:
        return windows.counts(size, kernel, stride, padding, dilation, ceil)
    except ValueError as error:
        raise ShapeError(str(error)) from None
