"""Linear maps with an index structure: sparse products, convolutions, poolings, scales, reductions, slices and paddings as one form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, singledispatch
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.arrays.channel_order import ChannelOrder
from snnc.compiler.ir.arrays.window_taps import convolution_places, pooling_places
from snnc.compiler.ir.graph import Array, Shape
from snnc.compiler.ir.step_operations import AddReduced, AddSlice, Convolve, Pooling, Rescale, SparseProduct, Surround
from snnc.compiler.ir.step_program import Buffer

Ints: TypeAlias = npt.NDArray[np.int64]
IndexedOp: TypeAlias = SparseProduct | Convolve | Pooling | Rescale | AddReduced | AddSlice | Surround
"""Operations that have this form (a maximum: see :attr:`IndexedMap.maximum`)."""


@dataclass(frozen=True, eq=False)
class IndexedMap:
    """``y[target + i] += theta[weight + i] * x[source]`` for ``i < length``, for every entry; `theta` holds weights, then biases.

    A bias is an entry of the source `inputs`, one after the last, whose value is always 1.

    Attributes
    ----------
    inputs, outputs
        Values of the source and of the target population.
    source, target, weight
        Parallel arrays, one number an entry; ordered by source, then target.
    length
        Values that every entry adds to; targets are multiples of it.
    order
        For each weight of theta, the element of the operation's weight parameter (empty: theta holds constants).
    constants
        Theta of an operation without parameters.
    biases
        Number of bias elements at the end of theta, in the parameter's own order.
    maximum
        True for ``y[target] += max of x[source]`` over the entries of a target, whose constants number these entries, first to last.
    """

    inputs: int
    outputs: int
    source: Ints
    target: Ints
    weight: Ints
    length: int = 1
    order: Ints | None = None
    constants: Array | None = None
    biases: int = 0
    maximum: bool = False

    @property
    def weights(self) -> int:
        """Elements of theta that are not biases."""
        return len(self.order) if self.order is not None else 0 if self.constants is None else len(self.constants)

    @property
    def elements(self) -> int:
        """Elements of theta."""
        return self.weights + self.biases


@dataclass(frozen=True)
class _Sizes:
    """Values of the source and of the target; shapes of weight and bias, None if there is none; the order of the target's values."""

    inputs: int
    outputs: int
    weight: Shape | None
    bias: Shape | None
    order: ChannelOrder | None = None


def indexed_map(op: IndexedOp, buffers: Mapping[str, Buffer]) -> IndexedMap:
    """Write `op`, an operation over `buffers`, in this form.

    Raises
    ------
    TooLargeError
        There would be more entries than can be addressed.
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
    return _made(op, sizes, before)


@lru_cache(maxsize=32)
def _made(op: IndexedOp, sizes: _Sizes, before: ChannelOrder | None) -> IndexedMap:
    """Cached: a network is planned several times, in several orders and variants."""
    return _sorted(_placed(_map(op, sizes), before, sizes.order))


def _placed(found: IndexedMap, before: ChannelOrder | None, after: ChannelOrder | None) -> IndexedMap:
    """Number values by their places; the source of biases stays after all others."""
    if before is not None:
        found = replace(found, source=np.append(before.places(), found.inputs)[found.source])
    return found if after is None else replace(found, target=after.places()[found.target])


def _sorted(found: IndexedMap) -> IndexedMap:
    order = np.lexsort((found.target, found.source))
    return replace(found, source=found.source[order], target=found.target[order], weight=found.weight[order])


def _with_bias(found: IndexedMap, size: int, each: Ints) -> IndexedMap:
    """Add an entry for every target: the bias element of index `each`."""
    return replace(
        found,
        source=np.concatenate([found.source, np.full(len(each), found.inputs)]),
        target=np.concatenate([found.target, np.arange(len(each))]),
        weight=np.concatenate([found.weight, found.weights + each]),
        biases=size,
    )


def _constant(sizes: _Sizes, source: Ints, target: Ints, factors: Array) -> IndexedMap:
    """Each value times the factor of its target."""
    constants, index = np.unique(factors.astype(np.float32), return_inverse=True)
    return IndexedMap(sizes.inputs, sizes.outputs, source, target, index.reshape(-1)[target], constants=constants)


def _maximum(sizes: _Sizes, source: Ints, target: Ints, tap: Ints) -> IndexedMap:
    """The entries of each target are numbered from 0 in the order of `tap`."""
    order = np.lexsort((tap, target))
    source, target = source[order], target[order]
    first = np.searchsorted(target, target, side="left")
    number = np.arange(len(target)) - first
    return IndexedMap(sizes.inputs, sizes.outputs, source, target, number, constants=np.zeros(0, np.float32), maximum=True)


@singledispatch
def _map(op: IndexedOp, sizes: _Sizes) -> IndexedMap:
    raise TypeError(op)


@_map.register
def _sparse(op: SparseProduct, sizes: _Sizes) -> IndexedMap:
    entries = np.arange(len(op.pattern.indices), dtype=np.int64)
    source, target = op.pattern.indices.astype(np.int64), op.pattern.rows.astype(np.int64)
    return IndexedMap(sizes.inputs, sizes.outputs, source, target, entries, order=entries)


@_map.register
def _convolution(op: Convolve, sizes: _Sizes) -> IndexedMap:
    positions = math.prod(op.windows.output)
    channels = sizes.outputs // positions
    grain = sizes.order.grain if sizes.order is not None and sizes.order.channels == channels else 1
    places, order = convolution_places(op.windows, channels, op.groups, grain)
    found = IndexedMap(sizes.inputs, sizes.outputs, places.source, places.target, places.weight, order=order)
    return found if op.bias is None else _with_bias(found, channels, np.repeat(np.arange(channels), positions))


@_map.register
def _pooling(op: Pooling, sizes: _Sizes) -> IndexedMap:
    places, divisors = pooling_places(op.windows, op.count_padding)
    if op.kind == "max":
        return _maximum(sizes, places.source, places.target, places.weight)
    return _constant(sizes, places.source, places.target, np.ones(sizes.outputs) if op.kind == "sum" else 1 / divisors)


@_map.register
def _scale(op: Rescale, sizes: _Sizes) -> IndexedMap:
    values = np.arange(sizes.inputs, dtype=np.int64)
    found = IndexedMap(sizes.inputs, sizes.outputs, values, values, _elements(sizes.weight, op.shape), order=np.arange(_size(sizes.weight)))
    return found if op.bias is None else _with_bias(found, _size(sizes.bias), _elements(sizes.bias, op.shape))


def _size(shape: Shape | None) -> int:
    return math.prod(shape or ())


def _elements(given: Shape | None, shape: Shape) -> Ints:
    """Element of an array of shape `given`, broadcast to `shape`, for each of its values."""
    found: Ints = np.broadcast_to(np.arange(_size(given), dtype=np.int64).reshape(given or ()), shape).reshape(-1)
    return found


@_map.register
def _reduction(op: AddReduced, sizes: _Sizes) -> IndexedMap:
    kept = np.arange(sizes.outputs, dtype=np.int64).reshape(tuple(1 if a in op.axes else n for a, n in enumerate(op.shape)))
    target, source = np.broadcast_to(kept, op.shape).reshape(-1), np.arange(sizes.inputs, dtype=np.int64)
    if op.kind == "max":
        return _maximum(sizes, source, target, _reduced_place(op))
    return _constant(sizes, source, target, np.full(sizes.outputs, sizes.outputs / sizes.inputs if op.kind == "mean" else 1.0))


def _reduced_place(op: AddReduced) -> Ints:
    """Place of each value among those that are reduced to one."""
    places = np.unravel_index(np.arange(math.prod(op.shape)), op.shape)
    found: Ints = np.ravel_multi_index([places[a] for a in op.axes], [op.shape[a] for a in op.axes])
    return found


@_map.register
def _slice(op: AddSlice, sizes: _Sizes) -> IndexedMap:
    some = (slice(None),) * op.axis + (slice(op.start, op.stop),)
    source = np.arange(sizes.inputs, dtype=np.int64).reshape(op.shape)[some].reshape(-1)
    return _constant(sizes, source, np.arange(sizes.outputs, dtype=np.int64), np.ones(sizes.outputs))


@_map.register
def _padding(op: Surround, sizes: _Sizes) -> IndexedMap:
    padded = tuple(before + n + after for n, (before, after) in zip(op.shape, op.padding, strict=True))
    some = tuple(slice(before, before + n) for n, (before, _) in zip(op.shape, op.padding, strict=True))
    target = np.arange(sizes.outputs, dtype=np.int64).reshape(padded)[some].reshape(-1)
    return _constant(sizes, np.arange(sizes.inputs, dtype=np.int64), target, np.ones(sizes.outputs))
