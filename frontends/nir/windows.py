"""Convert NIR's convolutions and poolings to operations of the graph."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from snnc.compiler.errors import ChannelError, WindowError
from snnc.compiler.ir.arrays.windows import output_shape
from snnc.compiler.ir.graph import Conv, Pool, Shape
from snnc.frontends.nir.errors import NirFieldError, NirShapeError
from snnc.frontends.nir.reading.fields import NirNode

_RANK: Final = {"Conv1d": 1, "Conv2d": 2, "SumPool2d": 2, "AvgPool2d": 2}
"""Number of spatial axes by type of node."""
_MAX: Final = 2**31 - 1
"""Largest accepted stride, dilation, padding, kernel size or number of groups."""


def window_operation(node: NirNode) -> Conv | Pool:
    """Return the operation for `node`, a Conv1d, Conv2d, SumPool2d or AvgPool2d; an invalid field raises a NirError."""
    rank = _RANK[node.type]
    stride = _numbers(node, "stride", rank, 1)
    if node.type in ("SumPool2d", "AvgPool2d"):
        kind: Literal["average", "sum"] = "sum" if node.type == "SumPool2d" else "average"
        return Pool(kind, _numbers(node, "kernel_size", rank, 1), stride, _padding(node, rank, (), ()))
    weight = node.fields["weight"].astype(np.float32, copy=False)
    if weight.ndim != rank + 2:
        raise NirShapeError(
            f"the weight of {_text(node)} has the shape {list(weight.shape)}; it must have {rank + 2} axes: [out, in / groups, *kernel]."
        )
    dilation = _numbers(node, "dilation", rank, 1)
    padding = _padding(node, rank, weight.shape[2:], dilation)
    if node.words.get("padding") == "same" and stride != (1,) * rank:
        raise NirFieldError(f"{_text(node)} has padding 'same' and stride {list(stride)}; 'same' requires stride 1; give numbers instead.")
    check_bias(node)
    return Conv(weight, node.fields["bias"].astype(np.float32), stride, padding, dilation, _numbers(node, "groups", 1, 1)[0])


def leaving_shape(node: NirNode, entering: Shape) -> Shape:
    """Return the output shape of `node` for the input shape `entering`.

    Raises a NirShapeError if no window fits, or the numbers of channels differ.
    """
    declared = node.fields.get("input_shape")
    if declared is not None and declared.size and tuple(declared.reshape(-1).tolist()) != entering[1:]:
        raise NirShapeError(
            f"{_text(node)} declares the input_shape {declared.reshape(-1).tolist()}, but its input has the shape {list(entering)}."
        )
    try:
        return output_shape(node.path, window_operation(node), entering)
    except (WindowError, ChannelError) as error:
        raise NirShapeError(error.text) from None


def check_bias(node: NirNode) -> None:
    """Check that the bias of `node`, if any, has one value per row of its weight, or raise a NirShapeError."""
    weight, bias = node.fields["weight"], node.fields.get("bias")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise NirShapeError(
            f"the bias of {_text(node)} has the shape {list(bias.shape)}; with the weight {list(weight.shape)}, it must be "
            f"[{weight.shape[0]}]."
        )


def _padding(node: NirNode, rank: int, kernel: Shape, dilation: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    word = node.words.get("padding")
    if word is None:
        return tuple((n, n) for n in _numbers(node, "padding", rank, 0))
    if word == "valid":
        return ((0, 0),) * rank
    if word == "same" and kernel:
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple((n // 2, n - n // 2) for n in total)
    raise NirFieldError(f"padding of {_text(node)} is {word[:40]!r}; it must be 'same' or 'valid' (for convolutions), or numbers.")


def _numbers(node: NirNode, name: str, count: int, least: int) -> tuple[int, ...]:
    """Return a field with one value for all dimensions, or one each, as `count` values."""
    values = node.fields[name].reshape(-1).astype(np.int64)
    if values.size not in (1, count) or values.min() < least or values.max() > _MAX:
        raise NirFieldError(f"{name} of {_text(node)} is {values.tolist()!s:.60}; give 1 or {count} numbers of {least} or more.")
    return tuple(int(n) for n in np.broadcast_to(values, (count,)))


def _text(node: NirNode) -> str:
    return f"{node.path!r} ({node.type})"
