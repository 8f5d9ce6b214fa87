"""Memo table shared by layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
MOST: Final = 1 << 14
"""Things that are kept; then all are forgotten."""


class Memo:
    """Results by key."""

    def __init__(self) -> None:
        self._found: dict[object, Any] = {}

    def get(self, key: object, make: Callable[[], T]) -> T:
        """Return what `make` made for this key, now or before."""
        if key not in self._found:
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[key] = make()
        found: T = self._found[key]
        return found
