"""A table of cached results with a bound on its size, for results that many placements of a network share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
MAX_RESULTS: Final = 1 << 14


class Memo:
    """Table with at most `most` results; if it is full, it is cleared."""

    def __init__(self, most: int = MAX_RESULTS) -> None:
        self._most, self._results = most, dict[object, Any]()

    def get(self, key: object, make: Callable[[], T]) -> T:
        """Return the cached result for `key`; the first call computes it with `make`."""
        if key not in self._results:
            if len(self._results) >= self._most:
                self._results.clear()
            self._results[key] = make()
        result: T = self._results[key]
        return result
