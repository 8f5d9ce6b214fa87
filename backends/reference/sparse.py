"""Products with sparse weights, and their adjoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snnc.backends.runtime.engine import Array
from snnc.compiler.ir.arrays.sparse import Pattern

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def sparse_product(x: Array, weight: Array, pattern: Pattern) -> Array:
    """Return ``x @ W.T``: [B, inputs] -> [B, outputs]."""
    product: Array = (_matrix(weight, pattern) @ x.T).T
    return product


def sparse_input_gradient(d_y: Array, weight: Array, pattern: Pattern) -> Array:
    """Return the adjoint of :func:`sparse_product` with respect to x: ``d_y @ W``."""
    adjoint: Array = (_matrix(weight, pattern).T @ d_y.T).T
    return adjoint


def sparse_weight_gradient(d_y: Array, x: Array, pattern: Pattern) -> Array:
    """Return the adjoint of :func:`sparse_product` with respect to the entries of the weight, summed over the batch."""
    rows, columns = pattern.rows, pattern.indices
    gradient: Array = d_y[0, rows] * x[0, columns]
    for sample in range(1, len(x)):
        gradient += d_y[sample, rows] * x[sample, columns]
    return gradient


def _matrix(weight: Array, pattern: Pattern) -> csr_array:
    from scipy.sparse import csr_array  # takes 0.2 s, needed only for sparse weights

    return csr_array((weight, pattern.indices, pattern.indptr), shape=pattern.shape)
