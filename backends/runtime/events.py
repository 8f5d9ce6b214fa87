"""Spikes as events: for each step and sample, the ids of the neurons that fire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import EventsError
from snnc.compiler.ir.graph import Shape

_COUNTING_RANGE: Final = 64
"""Positions of events are sorted by counting if their range is at most this many times their number.

The table of flags then has at most this many bytes per position.
"""


@dataclass(frozen=True, eq=False)
class Events:
    """A binary array that stores only its ones, in compressed rows (CSR).

    Sessions accept it in place of any array of spikes: [T, B, *shape] to run, [samples, T, *shape] to train. The targets cpu and cuda read
    it directly; for other targets, each batch is converted to a dense array.

    Attributes
    ----------
    begin
        [n m + 1]: start of each row in `ids`, then the number of ids.
    ids
        Indices of neurons, flattened over the axes of `shape` after the first two; distinct and ascending within a row.
    shape
        (n, m, *shape): the shape of the array; row r is ``array[r // m, r % m]``.

    Raises
    ------
    EventsError
        `begin` and `ids` do not have this form.

    Examples
    --------
    >>> events = Events.from_aer([0, 1, 1], [0, 0, 0], [2, 0, 1], shape=(2, 1, 3))
    >>> events.dense()[:, 0]
    array([[0., 0., 1.],
           [1., 1., 0.]], dtype=float32)
    """

    begin: npt.NDArray[np.uint64]
    ids: npt.NDArray[np.uint32]
    shape: Shape

    def __post_init__(self) -> None:
        _check_shape(self.shape)
        begin, ids = (_integers(a, name) for a, name in ((self.begin, "begin"), (self.ids, "ids")))
        rows, size = self.shape[0] * self.shape[1], prod(self.shape[2:])
        if len(begin) != rows + 1 or begin[0] != 0 or begin[-1] != len(ids) or (begin[1:] < begin[:-1]).any():
            raise EventsError(
                f"{len(begin)} row starts do not divide {len(ids)} ids into {rows} rows; give {rows + 1}, from 0 to {len(ids)}."
            )
        if len(ids) and (ids.min() < 0 or ids.max() >= size):
            raise EventsError(
                f"an event has the id {int(ids.max() if ids.max() >= size else ids.min())}; the {size} neurons have ids from 0."
            )
        unordered = ids[1:] <= ids[:-1]
        inner = begin[(begin > 0) & (begin < len(ids))]
        unordered[inner - 1] = False
        if unordered.any():
            row = int(np.searchsorted(begin, int(np.argmax(unordered)) + 1, side="right")) - 1
            raise EventsError(f"row {row} of the events has an id twice, or not in ascending order; events are spikes, 0 or 1.")
        object.__setattr__(self, "begin", np.ascontiguousarray(begin, np.uint64))
        object.__setattr__(self, "ids", np.ascontiguousarray(ids, np.uint32))

    @classmethod
    def from_dense(cls, array: npt.ArrayLike) -> Self:
        """Return the events of the nonzero values of an array [n, m, *shape]."""
        dense = np.asarray(array)
        if dense.ndim < 3:
            raise EventsError(f"an array of shape {list(dense.shape)} has no rows of neurons; give [n, m, *shape].")
        flat = dense.reshape(dense.shape[0] * dense.shape[1], -1) != 0
        return cls(_row_starts(np.count_nonzero(flat, axis=1)), np.nonzero(flat)[1].astype(np.uint32), dense.shape)

    @classmethod
    def from_aer(cls, first: npt.ArrayLike, second: npt.ArrayLike, ids: npt.ArrayLike, shape: Shape) -> Self:
        """Return the events with these addresses (AER, address-event representation), in any order; duplicate addresses are one event.

        Parameters
        ----------
        first, second
            Indices of each event along the first two axes: (step, sample) or (sample, step).
        ids
            Flat index of the neuron of each event.
        shape
            Shape of the array.
        """
        _check_shape(shape)
        one, two, neurons = (_integers(np.asarray(a), "addresses") for a in (first, second, ids))
        size = prod(shape[2:])
        for axis, (addresses, bound) in enumerate(((one, shape[0]), (two, shape[1]), (neurons, size))):
            if len(addresses) != len(one) or (len(addresses) and (addresses.min() < 0 or addresses.max() >= bound)):
                raise EventsError(f"addresses {axis} of the events must be one number per event ({len(one)}), from 0 to {bound - 1}.")
        places = _distinct((one * shape[1] + two) * size + neurons, shape[0] * shape[1] * size)
        starts = np.arange(shape[0] * shape[1] + 1) * size
        edges = np.searchsorted(places, starts if starts[-1] > np.iinfo(places.dtype).max else starts.astype(places.dtype))
        rows = np.repeat(starts[:-1].astype(places.dtype), np.diff(edges))
        return cls._from_checked(edges.astype(np.uint64), (places - rows).astype(np.uint32), shape)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes of the array."""
        return len(self.shape)

    def dense(self, dtype: npt.DTypeLike = np.float32) -> Array:
        """Return the array."""
        array: Array = np.zeros((self.shape[0] * self.shape[1], prod(self.shape[2:])), dtype)
        begin = self.begin.astype(np.int64)
        array[np.repeat(np.arange(len(array)), begin[1:] - begin[:-1]), self.ids] = 1
        return array.reshape(self.shape)

    @classmethod
    def _from_checked(cls, begin: npt.NDArray[np.uint64], ids: npt.NDArray[np.uint32], shape: Shape) -> Self:
        events = object.__new__(cls)
        for name, value in (("begin", begin), ("ids", ids), ("shape", shape)):
            object.__setattr__(events, name, value)
        return events

    def rows(self, indices: npt.NDArray[np.integer[Any]]) -> Self:
        """Return the rows at `indices` [n, m], in that order."""
        begin, chosen = self.begin.astype(np.int64), np.asarray(indices).reshape(-1)
        counts = (begin[1:] - begin[:-1])[chosen]
        begins = _row_starts(counts)
        places = np.arange(int(begins[-1])) + np.repeat(begin[:-1][chosen] - begins[:-1].astype(np.int64), counts)
        return self._from_checked(begins, self.ids[places], (*np.shape(indices), *self.shape[2:]))

    def part(self, second: slice | npt.NDArray[np.integer[Any]]) -> Self:
        """Return the array's part ``[:, second]``, for a slice or indices."""
        chosen = np.arange(self.shape[1])[second]
        if np.array_equal(chosen, np.arange(self.shape[1])):
            return self
        return self.rows(np.arange(self.shape[0])[:, None] * self.shape[1] + chosen[None, :])

    def of_samples(self, chosen: npt.NDArray[np.integer[Any]]) -> Self:
        """Select samples of an array [samples, T, *shape] and return [T, samples, *shape]."""
        return self.rows(np.asarray(chosen)[None, :] * self.shape[1] + np.arange(self.shape[1])[:, None])


def _check_shape(shape: Shape) -> None:
    if len(shape) < 3 or min(shape) < 1:
        raise EventsError(f"the events represent an array of shape {shape}; it needs two axes of rows and one or more of neurons.")


def _distinct(places: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.integer[Any]]:
    """Return the distinct numbers of `places`, all below `bound`, in ascending order; dense numbers are sorted by counting."""
    if bound <= _COUNTING_RANGE * len(places):
        occurs = np.zeros(bound, bool)
        occurs[places] = True
        return np.flatnonzero(occurs)
    narrow: npt.NDArray[Any] = np.sort(places.astype(np.int32) if bound <= 1 << 31 else places)
    is_first = np.ones(len(narrow), bool)
    np.not_equal(narrow[1:], narrow[:-1], out=is_first[1:])
    return narrow if is_first.all() else narrow[is_first]


def _integers(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    if np.ndim(array) != 1 or np.asarray(array).dtype.kind not in "iu":
        raise EventsError(f"the {name} of events must be one row of integers, not {np.asarray(array).dtype} {list(np.shape(array))}.")
    integers: npt.NDArray[Any] = np.asarray(array).astype(np.int64, copy=False)
    return integers


def _row_starts(counts: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.uint64)


InputValues: TypeAlias = Array | Events
"""Checked values of an input: dense or events."""


def densely(inputs: Mapping[str, InputValues]) -> dict[str, Array]:
    """Replace events by arrays."""
    return {name: values.dense() if isinstance(values, Events) else values for name, values in inputs.items()}
