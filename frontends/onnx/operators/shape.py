"""Handlers of operators that move values: reshape, slice, concatenate, gather, scatter and similar ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from snnc.frontends.onnx.errors import DataDependentError, MalformedGraphError, ShapeError, TimeMixingError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.flatten import Handler, OperatorCall, Value
from snnc.frontends.onnx.flattening.node import MAX_CONSTANT, Array, Node, check_size

_MAX_GATHERED: Final = 4096
"""Maximum number of scattered entries that one operator gathers, each by a slice of its own."""


def _constant(call: OperatorCall) -> list[Value]:
    for name in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        value = call.attribute(name)
        if value is not None:
            kind = np.float32 if "float" in name else np.int64
            return [call.pool.const(value if isinstance(value, np.ndarray) else np.array(value, kind))]
    raise UnsupportedOperatorError(f"{call.where}: it has neither a tensor nor a number.")


def _constant_of_shape(call: OperatorCall) -> list[Value]:
    shape = call.ints(0, "shape")
    if min(shape, default=0) < 0:
        raise ShapeError(f"{call.where}: the shape {list(shape)} has a negative size.")
    check_size(shape, call.where, MAX_CONSTANT)
    value = call.attribute("value")
    fill: Array = value if isinstance(value, np.ndarray) else np.zeros(1, np.float32)
    return [call.pool.const(np.full(shape, fill.reshape(-1)[0], fill.dtype))]


def _shape(call: OperatorCall) -> list[Value]:
    end = call.attribute("end")
    part = call.node(0).shape[call.integer("start") : end if isinstance(end, int) else None]
    return [call.pool.const(np.array(part, np.int64))]


def _range(call: OperatorCall) -> list[Value]:
    start, limit, delta = (call.array(k, "bounds").reshape(-1)[0] for k in range(3))
    if delta == 0:
        raise MalformedGraphError(f"{call.where}: the step of Range is 0.")
    check_size((max(0, int((limit - start) / delta) + 1),), call.where, MAX_CONSTANT)
    return [call.pool.const(np.arange(start, limit, delta))]


def _reshape(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    target = list(call.ints(1, "shape"))
    if not call.flag("allowzero"):
        target = [x.shape[k] if d == 0 and k < len(x.shape) else d for k, d in enumerate(target)]
    if target.count(-1) == 1:
        rest = math.prod(d for d in target if d != -1)
        if not rest or math.prod(x.shape) % rest:
            raise ShapeError(f"{call.where}: a value of shape {list(x.shape)} cannot be reshaped to {target}.")
        target[target.index(-1)] = math.prod(x.shape) // rest
    return [shaping.reshape(call.pool, x, tuple(target))]


def _flatten(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    axis = call.integer("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    return [shaping.reshape(call.pool, x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))]


def _squeeze(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    axes = call.axes(len(x.shape), 1)
    if axes is None:
        axes = tuple(k for k, d in enumerate(x.shape) if d == 1)
    wrong = [k for k in axes if x.shape[k] != 1]
    if wrong:
        raise ShapeError(f"{call.where}: axis {wrong[0]} of the shape {list(x.shape)} does not have size 1.")
    return [shaping.reshape(call.pool, x, tuple(d for k, d in enumerate(x.shape) if k not in axes))]


def _unsqueeze(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    listed = call.ints(1, "axes") if call.has(1) else call.attribute("axes", ())
    rank = len(x.shape) + len(listed)
    axes = {call.axis(a, rank) for a in listed}
    if len(axes) < len(listed):
        raise MalformedGraphError(f"{call.where}: its axes {list(listed)} list an axis twice.")
    rest = iter(x.shape)
    return [shaping.reshape(call.pool, x, tuple(1 if k in axes else next(rest) for k in range(rank)))]


def _transpose(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    perm = call.attribute("perm")
    order = perm if isinstance(perm, tuple) else tuple(reversed(range(len(x.shape))))
    if sorted(order) != list(range(len(x.shape))):
        raise MalformedGraphError(f"{call.where}: {list(order)} is not a permutation of the axes of {list(x.shape)}.")
    return [shaping.transpose(call.pool, x, order)]


def _tile(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    for axis, times in enumerate(call.ints(1, "repeats")):
        if times > 1:
            check_size((times, *x.shape), call.where)
            x = shaping.concat(call.pool, (x,) * times, axis)
    return [x]


def _concat(call: OperatorCall) -> list[Value]:
    nodes = call.nodes()
    return [shaping.concat(call.pool, tuple(nodes), call.axis(call.integer("axis"), len(nodes[0].shape)))]


def _split(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    axis = call.axis(call.integer("axis"), len(x.shape))
    size = x.shape[axis]
    split = call.attribute("split")
    if call.has(1):
        widths = list(call.ints(1, "sizes"))
    elif isinstance(split, tuple):
        widths = list(split)
    else:
        count = call.integer("num_outputs", len(call.operation.outputs))
        width = -(-size // count)
        widths = [max(0, min(width, size - k * width)) for k in range(count)]
    if sum(widths) != size or min(widths) < 0:
        raise ShapeError(f"{call.where}: the parts {widths[:8]} do not add up to the {size} entries of axis {axis}.")
    starts = np.cumsum([0, *widths])
    return [shaping.slice_axis(call.pool, x, axis, int(s), w) for s, w in zip(starts, widths, strict=False)]


def _gather(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    axis = call.axis(call.integer("axis"), len(x.shape))
    index = call.array(1, "index").astype(np.int64)
    size = x.shape[axis]
    if index.size and not (-size <= index.min() and index.max() < size):
        raise ShapeError(f"{call.where}: an index is outside the {size} entries of axis {axis} of {list(x.shape)}.")
    return [_gathered(call, x, axis, index % max(size, 1))]


def _gathered(call: OperatorCall, x: Node, axis: int, index: Array) -> Node:
    """Return the entries `index` of `axis`; the axes of `index` replace that axis."""
    if x.value is not None:
        return call.pool.const(np.take(x.value, index, axis))
    flat = index.reshape(-1)
    if flat.size and (np.diff(flat) == 1).all():
        entries = shaping.slice_axis(call.pool, x, axis, int(flat[0]), flat.size)
    elif 0 < flat.size <= _MAX_GATHERED:
        entries = shaping.concat(call.pool, tuple(shaping.slice_axis(call.pool, x, axis, int(k), 1) for k in flat), axis)
    else:
        raise TimeMixingError(f"{call.where}: it gathers {flat.size} scattered entries of axis {axis}; snnc reads at most {_MAX_GATHERED}.")
    return shaping.reshape(call.pool, entries, x.shape[:axis] + index.shape + x.shape[axis + 1 :])


def _gather_nd(call: OperatorCall) -> list[Value]:
    """Gather entries by their indices along the first axes, which are joined to one axis."""
    x, index = call.node(0), call.array(1, "index").astype(np.int64)
    depth = index.shape[-1] if index.ndim else 0
    if call.integer("batch_dims") or not 1 <= depth <= len(x.shape):
        raise UnsupportedOperatorError(
            f"{call.where}: snnc reads indices into the first axes of a value, here of shape {list(x.shape)}, without batch_dims."
        )
    sizes = np.array(x.shape[:depth])
    if index.size and not ((-sizes <= index).all() and (index < sizes).all()):
        raise ShapeError(f"{call.where}: an index is outside the first axes of {list(x.shape)}.")
    joined = shaping.reshape(call.pool, x, (math.prod(x.shape[:depth]), *x.shape[depth:]))
    return [_gathered(call, joined, 0, np.ravel_multi_index(tuple(np.moveaxis(index % sizes, -1, 0)), x.shape[:depth]))]


def _slice(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    starts, ends = call.ints(1, "starts"), call.ints(2, "ends")
    axes = tuple(call.axis(a, len(x.shape)) for a in call.ints(3, "axes")) if call.has(3) else tuple(range(len(starts)))
    steps = call.ints(4, "steps") if call.has(4) else (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise MalformedGraphError(f"{call.where}: a slice has a step of 0.")
        index = np.arange(*slice(start, end, step).indices(x.shape[axis]))
        if x.value is not None:
            x = call.pool.const(x.value[(slice(None),) * axis + (slice(start, end, step),)])
        elif not index.size:
            raise ShapeError(f"{call.where}: the slice [{start}:{end}] of axis {axis} of {list(x.shape)} is empty.")
        else:
            x = _gathered(call, x, axis, index)
    return [x]


def _sequence_at(call: OperatorCall) -> list[Value]:
    items = call.sequence(0)
    index = call.ints(1, "position")[0]
    if not -len(items) <= index < len(items):
        raise ShapeError(f"{call.where}: position {index} is outside a sequence of {len(items)} tensors.")
    return [items[index]]


def _sequence_insert(call: OperatorCall) -> list[Value]:
    items = list(call.sequence(0))
    items.insert(call.ints(2, "position")[0] if call.has(2) else len(items), call.node(1))
    return [tuple(items)]


def _sequence_concat(call: OperatorCall) -> list[Value]:
    items = call.sequence(0)
    if not items:
        raise ShapeError(f"{call.where}: the sequence is empty.")
    new = call.flag("new_axis")
    axis = call.axis(call.integer("axis"), len(items[0].shape) + new)
    if new:
        items = tuple(shaping.reshape(call.pool, n, (*n.shape[:axis], 1, *n.shape[axis:])) for n in items)
    return [shaping.concat(call.pool, items, axis)]


def _split_to_sequence(call: OperatorCall) -> list[Value]:
    x = call.node(0)
    axis = call.axis(call.integer("axis"), len(x.shape))
    if call.has(1):
        raise UnsupportedOperatorError(f"{call.where}: SplitToSequence with sizes is not supported.")
    pieces = tuple(shaping.slice_axis(call.pool, x, axis, k, 1) for k in range(x.shape[axis]))
    if not call.flag("keepdims", 1):
        pieces = tuple(shaping.drop_axis(call.pool, p, axis) for p in pieces)
    return [pieces]


def _nonzero(call: OperatorCall) -> list[Value]:
    if isinstance(n := call.arguments[0], Node) and n.value is not None:
        return [call.pool.const(np.stack(np.nonzero(n.value)).astype(np.int64))]
    raise DataDependentError(f"{call.where}: which entries it finds depends on the network's data.")


# ---- writing a block into a tensor: ``outputs[t] = y`` and ``outputs[:, t] = y`` ---------------------------------------


def _scatter_nd(call: OperatorCall) -> list[Value]:
    x, updates, index = call.node(0), call.node(2), _index(call)
    if index.ndim < 1 or not index.size or index.shape[-1] > len(x.shape):
        raise ShapeError(f"{call.where}: an index of shape {list(index.shape)} does not fit a value of shape {list(x.shape)}.")
    depth = index.shape[-1]
    points = index.reshape(-1, depth)
    _check_range(call, points, x.shape[:depth])
    points = points % np.array(x.shape[:depth])
    low = points.min(0)
    size = points.max(0) - low + 1
    # The indices must list a box in order. The box must cover all axes but one completely.
    partial = [k for k in range(depth) if size[k] != x.shape[k]]
    ordered = len(points) == size.prod() and (points == np.indices(size).reshape(depth, -1).T + low).all()
    if not ordered or len(partial) > 1:
        raise _scattered(call)
    axis, block = partial[0] if partial else 0, shaping.reshape(call.pool, updates, (*map(int, size), *x.shape[depth:]))
    return [shaping.write_slice(call.pool, x, block, axis, int(low[axis]))]


def _scatter_elements(call: OperatorCall) -> list[Value]:
    x, updates, index = call.node(0), call.node(2), _index(call)
    axis = call.integer("axis") % max(1, len(x.shape))
    if index.ndim != len(x.shape) or not index.size:
        raise ShapeError(f"{call.where}: an index of shape {list(index.shape)} does not fit a value of shape {list(x.shape)}.")
    _check_range(call, index, (x.shape[axis],))
    index = index % x.shape[axis]
    line = tuple(slice(None) if k == axis else slice(0, 1) for k in range(index.ndim))
    first = index[line]
    rows = first.reshape(-1)
    others_complete = all(n == d for k, (n, d) in enumerate(zip(index.shape, x.shape, strict=True)) if k != axis)
    if not others_complete or (index != first).any() or (np.diff(rows) != 1).any():
        raise _scattered(call)
    return [shaping.write_slice(call.pool, x, shaping.reshape(call.pool, updates, index.shape), axis, int(rows[0]))]


def _index(call: OperatorCall) -> Array:
    if call.attribute("reduction", "none") not in ("none", b"none"):
        raise UnsupportedOperatorError(f"{call.where}: snnc does not read a scatter with a reduction; use an addition.")
    return call.array(1, "index").astype(np.int64)


def _check_range(call: OperatorCall, index: Array, sizes: tuple[int, ...]) -> None:
    limits = np.array(sizes)
    if (index < -limits).any() or (index >= limits).any():
        raise ShapeError(f"{call.where}: it writes outside the {list(sizes)} entries of the first axes.")


def _scattered(call: OperatorCall) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        f"{call.where}: it writes to scattered places; snnc reads consecutive entries of one axis (outputs[t] = y). "
        "Collect the values in a list and stack them."
    )


HANDLERS: Final[Mapping[str, Handler]] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Shape": _shape,
    "Size": lambda call: [call.pool.const(np.array(math.prod(call.node(0).shape), np.int64))],
    "Range": _range,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Expand": lambda call: [shaping.expand(call.pool, call.node(0), call.ints(1, "shape"))],
    "Tile": _tile,
    "Concat": _concat,
    "Split": _split,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Slice": _slice,
    "ScatterND": _scatter_nd,
    "ScatterElements": _scatter_elements,
    "SequenceEmpty": lambda call: [()],
    "SequenceConstruct": lambda call: [tuple(call.nodes())],
    "SequenceAt": _sequence_at,
    "SequenceInsert": _sequence_insert,
    "SequenceLength": lambda call: [call.pool.const(np.array(len(call.sequence(0)), np.int64))],
    "ConcatFromSequence": _sequence_concat,
    "SplitToSequence": _split_to_sequence,
    "NonZero": _nonzero,
}
