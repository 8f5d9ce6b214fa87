"""Nodes of convolutions and poolings, and slices through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from snnc.compiler.ir.arrays.windows import DIMENSIONS
from snnc.frontends.common import windows
from snnc.frontends.common.windows import Pairs
from snnc.frontends.onnx.errors import NotYetError, ShapeError
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, Array, Node, NodePool, Shape, check_size


def _check_rank(x: Node, kernel: Shape, what: str) -> None:
    if len(x.shape) != len(kernel) + 2:
        raise ShapeError(f"{what} with a kernel of {len(kernel)} dimensions reads a value of shape {list(x.shape)}.")
    if len(kernel) not in DIMENSIONS:
        raise NotYetError(f"{what} over {len(kernel)} dimensions is not read yet; snnc reads 1 and 2.")


def convolution(
    pool: NodePool, x: Node, weight: Node, bias: Node | None, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Node:
    """Return the convolution of `x` [batch, channels, *size] with a constant weight [out, channels / groups, *kernel].

    Raises
    ------
    ShapeError
        The sizes differ.
    """
    kernel = weight.shape[2:]
    _check_rank(x, kernel, "a convolution")
    fits = groups > 0 and x.shape[1] == weight.shape[1] * groups and weight.shape[0] % groups == 0
    if not fits or (bias is not None and bias.shape != weight.shape[:1]):
        raise ShapeError(f"a convolution of {list(x.shape)} with a weight of {list(weight.shape)} in {groups} group(s): channels differ.")
    counts = _counts(x.shape[2:], kernel, stride, padding, dilation)
    shape = (x.shape[0], weight.shape[0], *counts)
    check_size(shape, "the result of a convolution")
    attrs = (stride, padding, dilation, groups)
    inputs = (x, weight) if bias is None else (x, weight, bias)
    value: Array | None = None
    if x.value is not None:
        check_size(shape, "the constant result of a convolution", MAX_CONSTANT)
        value = evaluate_window("conv", attrs, [n.value for n in inputs if n.value is not None])
    return pool.make("conv", inputs, shape, attrs, value)


def pooling(
    pool: NodePool, x: Node, kind: str, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, ceil: bool, count_padding: bool
) -> Node:
    """Return the "average", "sum" or "max" over windows of `x` [batch, channels, *size]."""
    _check_rank(x, kernel, "a pooling")
    if any(p >= (k - 1) * d + 1 for k, d, pair in zip(kernel, dilation, padding, strict=True) for p in pair):
        raise ShapeError(f"a pooling with windows of {list(kernel)} has pads {list(padding)} as large as they are.")
    counts = _counts(x.shape[2:], kernel, stride, padding, dilation, ceil)
    attrs = (kind, kernel, stride, padding, dilation, ceil, count_padding)
    value = None if x.value is None else evaluate_window("pool", attrs, [x.value])
    return pool.make("pool", (x,), (*x.shape[:2], *counts), attrs, value)


def evaluate_window(op: str, attrs: tuple[Any, ...], arrays: list[Array]) -> Array:
    """Evaluate a "conv" or "pool"."""
    if op == "conv":
        bias = arrays[2] if len(arrays) > 2 else None
        return windows.convolve(arrays[0], arrays[1], bias, *attrs)
    return windows.pool(arrays[0], *attrs)


def push_window(
    pool: NodePool, x: Node, axis: int, start: int, size: int, cut: Callable[[NodePool, Node, int, int, int, int], Node], depth: int
) -> Node | None:
    """Return a slice of a convolution or pooling as a convolution or pooling of a slice; None if the axis is spatial."""
    source = x.inputs[0]
    if x.op == "pool":
        if axis > 1:
            return None
        return pooling(pool, cut(pool, source, axis, start, size, depth), *x.attrs)
    rest = x.inputs[1:]
    if axis == 0:
        source = cut(pool, source, 0, start, size, depth)
    elif axis == 1 and x.attrs[3] == 1:
        rest = tuple(cut(pool, n, 0, start, size, depth) for n in rest)
    else:
        return None
    return convolution(pool, source, rest[0], rest[1] if len(rest) > 1 else None, *x.attrs)


def _counts(size: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, ceil: bool = False) -> Shape:
    try:
        return windows.counts(size, kernel, stride, padding, dilation, ceil)
    except ValueError as error:
        raise ShapeError(str(error)) from None
