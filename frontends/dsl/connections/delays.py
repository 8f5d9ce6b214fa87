"""Delays of individual weights: a connection whose weights have different delays becomes a sparse operation for each delay."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.ir.arrays.sparse import Pattern, row_pointer
from snnc.compiler.ir.graph import Array, Shape
from snnc.frontends.dsl.errors import SynapticDelayError


@dataclass(frozen=True)
class UniformDelay:
    """Integer delays distributed uniformly from `low` to `high`, both included.

    `seed` applies to the delays only; None continues the random stream of the connection.
    """

    low: int = 1
    high: int = 10
    seed: int | None = None

    def draw_delays(self, shape: Shape, rng: np.random.Generator) -> Array:
        """Return integers in an array of `shape`."""
        generator = rng if self.seed is None else Stream(self.seed)
        return generator.integers(operator.index(self.low), operator.index(self.high), shape, endpoint=True)


Delays: TypeAlias = "npt.ArrayLike | Any | None"
"""Integers, a scipy.sparse matrix with the pattern of the weights, or an object that draws them, such as :class:`UniformDelay`."""


def drawn_delays(delays: Delays, shape: Shape, pattern: Pattern | None, rng: np.random.Generator, where: str) -> Array | None:
    """Return the delay of each weight in steps: an array of `shape` or, with a `pattern`, one delay per entry of it; None without delays.

    Delays that are negative, not whole, or do not match the weights raise a SynapticDelayError.
    """
    if delays is None:
        return None
    what = f"{where}: delays"
    try:
        if hasattr(delays, "draw_delays"):
            values = np.asarray(delays.draw_delays(shape if pattern is None else pattern.indices.shape, rng))
        elif hasattr(delays, "tocsr"):
            values = _of_pattern(delays, shape, pattern, what)
        else:
            values = np.asarray(delays)
            _check_shape(values.shape, shape, what)
            values = values if pattern is None else values[pattern.rows, pattern.indices]
        with np.errstate(invalid="ignore"):
            steps = values.astype(np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SynapticDelayError(f"{what} are {delays!r} ({error}); give whole numbers or snnc.UniformDelay(1, 20).") from None
    if values.dtype.kind not in "iufb" or (steps != values).any() or (steps < 0).any():
        raise SynapticDelayError(f"{what} range from {values.min()} to {values.max()}; a delay is a whole number of steps, 0 or more.")
    return steps


def by_delay(
    weight: Array, rows: Array, columns: Array, delays: Array, shape: tuple[int, int], bias: Array | None, learnable: bool
) -> Iterator[tuple[int, ir.Sparse]]:
    """Yield each delay and a sparse operation with the weights that have this delay; the first operation has the bias.

    `weight`, `rows`, `columns` and `delays` have one value per weight, sorted by row.
    """
    for delay in np.unique(delays):
        with_delay = delays == delay
        indptr = row_pointer(np.bincount(rows[with_delay], minlength=shape[0]))
        yield int(delay), ir.Sparse(weight[with_delay], columns[with_delay], indptr, shape, bias, learnable)
        bias = None


def _of_pattern(delays: Any, shape: Shape, pattern: Pattern | None, what: str) -> Array:
    """Return the values of a scipy.sparse matrix of delays, whose entries (also explicit zeros) must be at the places of the weights."""
    matrix = delays.tocsr()
    _check_shape(matrix.shape, shape, what)
    matrix = matrix.copy()
    if not matrix.has_canonical_format:
        raise SynapticDelayError(f"{what} contain a place twice; call sum_duplicates() on the matrix, or give each place once.")
    same = pattern is not None and np.array_equal(matrix.indptr, pattern.indptr) and np.array_equal(matrix.indices, pattern.indices)
    if not same:
        weights = shape[0] * shape[1] if pattern is None else len(pattern.indices)
        raise SynapticDelayError(
            f"{what} are a sparse matrix with {matrix.nnz} entries at other places than the {weights} weights; give one delay "
            "for each weight."
        )
    return np.asarray(matrix.data)


def _check_shape(shape: Shape, expected: Shape, what: str) -> None:
    if shape != expected:
        raise SynapticDelayError(f"{what} have shape {shape}; give one delay for each weight, in shape {expected}.")
