"""Connections as tables of entries: one form of sparse products, convolutions, poolings, scales, reductions, slices and paddings.

Tile programs store these connections in this form (docs/decisions/0008-indexed-connections.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.arrays.channel_order import ChannelOrder
from snnc.compiler.ir.arrays.sizes import check_size
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.graph import Array, Shape
from snnc.compiler.ir.step_operations import AddPadded, AddReduced, AddSlice, BufferValue, Convolve, Pooling, Rescale, SparseProduct
from snnc.compiler.ir.step_program import Buffer

Ints: TypeAlias = npt.NDArray[np.int64]


def _taps(windows: Windows) -> tuple[Ints, Ints, Ints]:
    """Return the taps of all windows that read the input and not its padding, for one channel.

    The arrays contain the index of the source value, of the window and of the tap in the kernel; indices are flat, in C order.
    """
    parts = []
    for axis in windows.axes:
        tap, window = np.meshgrid(np.arange(axis.kernel, dtype=np.int64), np.arange(axis.count, dtype=np.int64), indexing="ij")
        position = window * axis.stride - axis.before + tap * axis.dilation
        inside = (position >= 0) & (position < axis.size)
        parts.append((position[inside], window[inside], tap[inside]))
    source, target, kernel = zip(*parts, strict=True)
    return _outer(source, windows.size), _outer(target, windows.output), _outer(kernel, windows.kernel)


def _outer(axes: Sequence[Ints], shape: tuple[int, ...]) -> Ints:
    """Return the flat index, in C order, of each combination of one index per axis."""
    index = axes[0]
    for indices, size in zip(axes[1:], shape[1:], strict=True):
        index = (index[:, None] * size + indices).reshape(-1)
    return index


IndexedOp: TypeAlias = SparseProduct | Convolve | Pooling | Rescale | AddReduced | AddSlice | AddPadded
"""Operations that an :class:`IndexedMap` represents; for maxima see :attr:`IndexedMap.maximum`."""


@dataclass(frozen=True, eq=False)
class IndexedMap:
    """``y[target + i] += theta[weight + i] * x[source]`` for ``i < length``, for every entry; `theta` contains weights, then biases.

    A bias is an entry that reads ``x[inputs]``, one element after the values of the source, which is always 1.
    """

    # Number of values of the source and of the target population.
    inputs: int
    outputs: int
    # Parallel arrays, one number per entry; ordered by source, then target.
    source: Ints
    target: Ints
    weight: Ints
    length: int = 1  # number of target values of each entry; targets are multiples of it
    order: Ints | None = None  # for each weight of theta, the element of the operation's weight parameter (None: theta contains constants)
    constants: Array | None = None  # theta of an operation without parameters
    biases: int = 0  # number of bias elements at the end of theta, in the order of the parameter
    maximum: bool = False
    """True for ``y[target] += max of x[source]`` over the entries of a target; `weight` then numbers the entries of each target."""

    @property
    def weights(self) -> int:
        """Number of elements of theta that are not biases."""
        return len(self.order) if self.order is not None else 0 if self.constants is None else len(self.constants)

    @property
    def reordered(self) -> bool:
        """Whether the weights of theta are in a different order than the parameter of the operation."""
        return self.order is not None and bool((self.order != np.arange(len(self.order))).any())

    @property
    def elements(self) -> int:
        """Number of elements of theta."""
        return self.weights + self.biases


@dataclass(frozen=True)
class _Sizes:
    """Numbers of source and target values; shapes of weight and bias (None without one); order of the target values."""

    inputs: int
    outputs: int
    weight: Shape | None
    bias: Shape | None
    order: ChannelOrder | None


def indexed_map(op: IndexedOp, buffers: Mapping[str, Buffer]) -> IndexedMap:
    """Return the map of `op`, an operation over `buffers`.

    Operations of the same structure, such as the gates of a cell, share one map, so data derived from it are computed once. A map with more
    entries than can be addressed raises a TooLargeError.
    """
    weight, bias = getattr(op, "weight", None), getattr(op, "bias", None)
    before, after = buffers[op.source.buffer].order, buffers[op.target].order
    sizes = _Sizes(
        math.prod(buffers[op.source.buffer].shape),
        math.prod(buffers[op.target].shape),
        buffers[weight].shape if weight else None,
        buffers[bias].shape if bias else None,
        after,
    )
    named = (f.name for f in fields(op) if f.name in _NAMES and getattr(op, f.name) is not None)
    return _cached_map(replace(op, **{name: _NAMES[name] for name in named}), sizes, before)


_NAMES: Final[Mapping[str, Any]] = {"connection": "", "source": BufferValue(""), "target": "", "weight": "weight", "bias": "bias"}
"""Fields of an operation that its map does not depend on, and the placeholders that replace them (None is not replaced)."""


@functools.lru_cache(maxsize=32)
def _cached_map(op: IndexedOp, sizes: _Sizes, before: ChannelOrder | None) -> IndexedMap:
    """Return the map of `op`; cached, because a network is planned several times, in several orders and variants."""
    entries = _map(op, sizes)
    # In another order of values, the source of biases remains the last.
    source = entries.source if before is None else np.append(before.places(), entries.inputs)[entries.source]
    target = entries.target if sizes.order is None else sizes.order.places()[entries.target]
    order = np.lexsort((target, source))
    return replace(entries, source=source[order], target=target[order], weight=entries.weight[order])


def _with_bias(entries: IndexedMap, size: int, bias: Ints) -> IndexedMap:
    """Add a bias entry for every target; `bias` is the index of its bias element, `size` the number of bias elements."""
    return replace(
        entries,
        source=np.concatenate([entries.source, np.full(len(bias), entries.inputs)]),
        target=np.concatenate([entries.target, np.arange(len(bias))]),
        weight=np.concatenate([entries.weight, entries.weights + bias]),
        biases=size,
    )


def _constant(sizes: _Sizes, source: Ints, target: Ints, factors: Array) -> IndexedMap:
    """Return the map that multiplies each value by the factor of its target."""
    constants, index = np.unique(factors.astype(np.float32), return_inverse=True)
    return IndexedMap(sizes.inputs, sizes.outputs, source, target, index.reshape(-1)[target], constants=constants)


def _maximum(sizes: _Sizes, source: Ints, target: Ints, tap: Ints) -> IndexedMap:
    """Return the map of a maximum; weights number the entries of each target from 0, in the order of `tap`."""
    order = np.lexsort((tap, target))
    source, target = source[order], target[order]
    first = np.searchsorted(target, target, side="left")
    number = np.arange(len(target)) - first
    return IndexedMap(sizes.inputs, sizes.outputs, source, target, number, constants=np.zeros(0, np.float32), maximum=True)


@functools.singledispatch
def _map(op: IndexedOp, sizes: _Sizes) -> IndexedMap:
    raise TypeError(op)


@_map.register
def _sparse(op: SparseProduct, sizes: _Sizes) -> IndexedMap:
    entries = np.arange(len(op.pattern.indices), dtype=np.int64)
    source, target = op.pattern.indices.astype(np.int64), op.pattern.rows.astype(np.int64)
    return IndexedMap(sizes.inputs, sizes.outputs, source, target, entries, order=entries)


@_map.register
def _convolution(op: Convolve, sizes: _Sizes) -> IndexedMap:
    """Return the map of a convolution, with one bias for each channel.

    If the stride of the last kernel axis equals its dilation, this axis is reversed: the windows that read one value then have consecutive
    weights, and their entries can be merged into runs. The weights of `grain` adjacent output channels are adjacent for each tap.
    """
    windows, positions = op.windows, math.prod(op.windows.output)
    channels = sizes.outputs // positions
    grain = sizes.order.grain if sizes.order is not None and sizes.order.channels == channels else 1
    (value, window, tap), (inputs, outputs) = _taps(windows), (windows.channels // op.groups, channels // op.groups)
    check_size((op.groups, inputs, outputs, max(1, len(value))), "a convolution, written as one entry for each pair of values,")
    kernel = math.prod(windows.kernel)
    order = np.arange(channels * inputs * kernel, dtype=np.int64).reshape(channels // grain, grain, inputs, -1, windows.kernel[-1])
    if windows.stride[-1] == windows.dilation[-1]:
        order = order[..., ::-1]
        tap = tap - tap % windows.kernel[-1] + (windows.kernel[-1] - 1 - tap % windows.kernel[-1])
    channel = np.arange(channels, dtype=np.int64)[:, None, None]
    inner = np.arange(inputs, dtype=np.int64)[None, :, None]
    source = (channel // outputs * inputs + inner) * math.prod(windows.size) + value
    target = np.broadcast_to(channel * positions + window, source.shape)
    weight = ((channel // grain * inputs + inner) * kernel + tap) * grain + channel % grain
    order = np.moveaxis(order, 1, -1).reshape(-1)
    result = IndexedMap(sizes.inputs, sizes.outputs, source.reshape(-1), target.reshape(-1), weight.reshape(-1), order=order)
    return result if op.bias is None else _with_bias(result, channels, np.repeat(np.arange(channels), positions))


@_map.register
def _pooling(op: Pooling, sizes: _Sizes) -> IndexedMap:
    windows, (value, window, tap) = op.windows, _taps(op.windows)
    check_size((windows.channels, max(1, len(value))), "a pooling, written as one entry for each tap,")
    channel = np.arange(windows.channels, dtype=np.int64)[:, None]
    source = (channel * math.prod(windows.size) + value).reshape(-1)
    target = (channel * math.prod(windows.output) + window).reshape(-1)
    if op.kind == "max":
        return _maximum(sizes, source, target, np.tile(tap, windows.channels))
    if op.kind == "sum":
        return _constant(sizes, source, target, np.ones(sizes.outputs))
    divisor = functools.reduce(np.multiply.outer, windows.taps_inside(op.count_padding))
    return _constant(sizes, source, target, 1 / np.tile(divisor.reshape(-1), windows.channels))


@_map.register
def _scale(op: Rescale, sizes: _Sizes) -> IndexedMap:
    values = np.arange(sizes.inputs, dtype=np.int64)
    weight, order = _elements(sizes.weight, op.shape), np.arange(_size(sizes.weight))
    result = IndexedMap(sizes.inputs, sizes.outputs, values, values, weight, order=order)
    return result if op.bias is None else _with_bias(result, _size(sizes.bias), _elements(sizes.bias, op.shape))


def _size(shape: Shape | None) -> int:
    return math.prod(shape or ())


def _elements(small: Shape | None, shape: Shape) -> Ints:
    """Return, for each value of an array of `shape`, the index of the element that it gets if an array of shape `small` is broadcast."""
    return np.broadcast_to(np.arange(_size(small), dtype=np.int64).reshape(small or ()), shape).reshape(-1)


@_map.register
def _reduction(op: AddReduced, sizes: _Sizes) -> IndexedMap:
    results = np.arange(sizes.outputs, dtype=np.int64).reshape(tuple(1 if a in op.axes else n for a, n in enumerate(op.shape)))
    target, source = np.broadcast_to(results, op.shape).reshape(-1), np.arange(sizes.inputs, dtype=np.int64)
    if op.kind == "max":
        # The position of each value among the values reduced to the same result.
        indices = np.unravel_index(np.arange(math.prod(op.shape)), op.shape)
        return _maximum(sizes, source, target, np.ravel_multi_index([indices[a] for a in op.axes], [op.shape[a] for a in op.axes]))
    return _constant(sizes, source, target, np.full(sizes.outputs, sizes.outputs / sizes.inputs if op.kind == "mean" else 1.0))


@_map.register
def _slice(op: AddSlice, sizes: _Sizes) -> IndexedMap:
    kept = (slice(None),) * op.axis + (slice(op.start, op.stop),)
    source = np.arange(sizes.inputs, dtype=np.int64).reshape(op.shape)[kept].reshape(-1)
    return _constant(sizes, source, np.arange(sizes.outputs, dtype=np.int64), np.ones(sizes.outputs))


@_map.register
def _padding(op: AddPadded, sizes: _Sizes) -> IndexedMap:
    padded = tuple(before + n + after for n, (before, after) in zip(op.shape, op.padding, strict=True))
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(op.shape, op.padding, strict=True))
    target = np.arange(sizes.outputs, dtype=np.int64).reshape(padded)[inner].reshape(-1)
    return _constant(sizes, np.arange(sizes.inputs, dtype=np.int64), target, np.ones(sizes.outputs))
