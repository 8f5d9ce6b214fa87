"""Seeded random numbers that do not change with the version of NumPy.

NumPy guarantees the raw numbers of PCG64 and of SeedSequence, and the distributions of its frozen ``RandomState``; those of ``Generator``
may change with any version (NEP 19).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.graph import Array

FROZEN: Final = ("uniform", "normal", "lognormal", "binomial")
"""Methods with the same arguments in ``Generator`` and in ``RandomState``."""


class Stream(np.random.Generator):
    """Generator on PCG64. :data:`FROZEN` and the methods below draw like ``RandomState``; other methods of NumPy's generator may change."""

    # The signatures are parts of NumPy's.
    def __init__(self, seed: int | Sequence[int]) -> None:
        bits = np.random.PCG64(seed)
        super().__init__(bits)
        self._frozen = np.random.RandomState(bits)
        for name in FROZEN:
            setattr(self, name, getattr(self._frozen, name))

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return random numbers in [0, 1), from the upper 53 bits of each raw number."""
        return _converted(self._frozen.random_sample(size), dtype, out)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return normally distributed numbers with mean 0 and variance 1."""
        return _converted(self._frozen.standard_normal(size), dtype, out)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False) -> Any:
        """Return whole numbers in [low, high), or in [0, low) without `high`; with `endpoint`, the upper end is included."""
        first, last = (0, low) if high is None else (low, high)
        return self._frozen.randint(first, np.asarray(last) + 1 if endpoint else last, size, dtype)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """Return the numbers below `x`, or the rows of `x`, in a random order (Fisher and Yates)."""
        if axis:
            raise ValueError("only rows can be permuted")
        return self._frozen.permutation(x)

    def distinct(self, population: int, count: int) -> Array:
        """Return `count` distinct numbers below `population`, in ascending order."""
        if 4 * count > population:
            return np.sort(self._frozen.permutation(population)[:count])
        # Below a quarter of the population, few of the drawn numbers are equal, and memory depends on `count` only.
        drawn = np.empty(0, dtype=np.int64)
        while len(drawn) < count:
            more = np.concatenate([drawn, self._frozen.randint(0, population, count - len(drawn), np.int64)])
            ascending = np.sort(more)
            if (ascending[1:] != ascending[:-1]).all():
                return ascending
            drawn = more[np.sort(np.unique(more, return_index=True)[1])]
        return np.sort(drawn)


def _converted(drawn: Any, dtype: Any, out: Any) -> Any:
    if out is None:
        return np.asarray(drawn).astype(dtype)[()]
    out[...] = drawn
    return out
