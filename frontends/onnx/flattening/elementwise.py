"""Create nodes of elementwise operations in a flattened graph."""

from __future__ import annotations

import numpy as np

from snnc.frontends.common.functions import COMPARISONS, apply
from snnc.frontends.onnx.errors import ShapeError
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, Node, NodePool, Shape, check_size


def elementwise(pool: NodePool, op: str, *inputs: Node) -> Node:
    """Return the node of ``op(*inputs)`` with NumPy broadcasting.

    Constants are evaluated; constant comparisons and floating-point results also keep their operation.

    Raises
    ------
    ShapeError
        The shapes do not broadcast.
    """
    shape = broadcast(tuple(n.shape for n in inputs), op)
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


def broadcast(shapes: tuple[Shape, ...], op: str) -> Shape:
    """Return the shape to which `shapes` broadcast.

    Raises
    ------
    ShapeError
        The shapes do not broadcast.
    """
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(s)) for s in shapes)
        raise ShapeError(f"the operands of '{op}' have the shapes {listed}, which cannot be broadcast together.") from None
