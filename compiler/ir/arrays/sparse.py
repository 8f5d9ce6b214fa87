"""Sparse weights: the positions of their entries, checks of these positions, and conversion to dense weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from snnc.compiler.errors import ParameterShapeError, SparsePatternError
from snnc.compiler.ir.arrays.sizes import check_size
from snnc.compiler.ir.graph import Array, Linear, Sparse


@dataclass(frozen=True, eq=False)
class Pattern:
    """Positions of the entries of a matrix in compressed rows; fields as in :class:`~snnc.compiler.ir.graph.Sparse`."""

    indices: Array
    indptr: Array
    shape: tuple[int, int]

    @cached_property
    def rows(self) -> Array:
        """Row of each entry."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.indptr))


def row_pointer(counts: Array) -> Array:
    """Return the ``indptr`` of a matrix in compressed rows, [rows + 1], for the number of entries of each row."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def pattern_of(operation: Sparse) -> Pattern:
    """Return the positions of the entries of `operation`."""
    return Pattern(operation.indices, operation.indptr, operation.shape)


def dense_weight(operation: Sparse) -> Array:
    """Return the weight of `operation` with its zeros, [outputs, inputs]; one that is too large raises a TooLargeError."""
    check_size(operation.shape, "a sparse weight with its zeros")
    dense = np.zeros(operation.shape, operation.weight.dtype)
    dense[pattern_of(operation).rows, operation.indices] = operation.weight
    return dense


def to_linear(operation: Sparse) -> Linear:
    """Return `operation` as a dense Linear; if it is learnable, training also changes its zeros."""
    return Linear(dense_weight(operation), operation.bias, operation.learnable)


def nonzeros_of(dense: Array, operation: Sparse) -> Array:
    """Return the elements of a weight [outputs, inputs] at the positions of the entries of `operation`."""
    return dense[pattern_of(operation).rows, operation.indices]


def check_pattern(name: str, operation: Sparse) -> None:
    """Check the positions of the entries of node `name` before they are used as indices."""
    weight, indices, indptr, (outputs, inputs) = operation.weight, operation.indices, operation.indptr, operation.shape
    for what, array in (("weight", weight), ("indices", indices), ("indptr", indptr)):
        if array.ndim != 1 or not array.size:
            raise ParameterShapeError(f"the {what} of {name!r} has shape {array.shape}; it must be a vector of one entry or more.")
    for what, array in (("indices", indices), ("indptr", indptr)):
        if array.dtype.kind not in "iu":
            raise SparsePatternError(f"the {what} of {name!r} are {array.dtype}; they must be whole numbers (int32).")
    if len(indptr) != outputs + 1:
        raise SparsePatternError(f"{name!r} has {outputs} outputs and indptr of {len(indptr)} numbers; it must have {outputs + 1}.")
    if len(indices) != len(weight):
        raise SparsePatternError(f"{name!r} has {len(weight)} entries and {len(indices)} indices; give one each.")
    if indptr[0] != 0 or indptr[-1] != len(weight) or (indptr[1:] < indptr[:-1]).any():
        raise SparsePatternError(
            f"indptr of {name!r} runs from {indptr[0]} to {indptr[-1]}; it must rise from 0 to the number of entries, {len(weight)}."
        )
    _check_indices(name, pattern_of(operation), inputs)


def _check_indices(name: str, pattern: Pattern, inputs: int) -> None:
    indices, rows = pattern.indices, pattern.rows
    outside = np.flatnonzero((indices < 0) | (indices >= inputs))
    if outside.size:
        first = outside[0]
        raise SparsePatternError(
            f"entry {first} of {name!r} is in column {indices[first]} of {inputs} ({outside.size} entries are outside); "
            f"a column is 0 to {inputs - 1}."
        )
    unsorted = np.flatnonzero((rows[1:] == rows[:-1]) & (indices[1:] <= indices[:-1]))
    if unsorted.size:
        first = unsorted[0]
        raise SparsePatternError(
            f"row {rows[first]} of {name!r} has column {indices[first + 1]} after column {indices[first]}; columns of a row must be "
            "ascending and distinct (scipy: matrix.sum_duplicates())."
        )
