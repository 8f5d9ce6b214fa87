"""What several layouts share is worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

MOST: Final = 1 << 14
"""Things that are kept; then all are forgotten."""


class Kept:
    """Results by key."""

    def __init__(self) -> None:
        self._found: dict[object, Any] = {}

    def get(self, key: object, make: Callable[[], Any]) -> Any:
        """Return what `make` made for this key, now or before."""
        if key not in self._found:
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[key] = make()
        return self._found[key]
