"""A table of cached results with a bound on its size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
MOST: Final = 1 << 14
"""Maximum number of cached results; beyond it, the table is cleared."""


class Memo:
    """Table with at most :data:`MOST` results."""

    def __init__(self) -> None:
        self._found: dict[object, Any] = {}

    def get(self, key: object, make: Callable[[], T]) -> T:
        """Return the cached result for `key`; the first call computes it with `make`."""
        if key not in self._found:
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[key] = make()
        found: T = self._found[key]
        return found
