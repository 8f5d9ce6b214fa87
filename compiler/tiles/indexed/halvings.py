"""Number of halvings (steps) of a binary search in a list of ids."""

from __future__ import annotations

import math

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Ints


def halvings(ids: Ints) -> Ints:
    """Return the number of halvings in a list of `ids` ids, which is the number of bits of `ids`."""
    return np.frexp(ids.astype(np.float64))[1].astype(np.int64)


def expected_halvings(mean: float) -> float:
    """Return the expected halvings of a binary search in N ids, ``floor(log2 N) + 1``, for Poisson-distributed N (normal approximation).

    Examples
    --------
    >>> round(expected_halvings(100.0), 2)
    7.0
    >>> expected_halvings(0.0)
    0.0
    """
    if mean <= 0:
        return 0.0
    found, power = 1.0 - math.exp(-mean), 2
    while power < 2 * mean + 8:
        found += 0.5 * math.erfc((power - 0.5 - mean) / math.sqrt(2 * mean))
        power *= 2
    return found
