"""Base class of engines that call another engine."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from snnc.backends.runtime.engine import Engine, profile_of

Inner = TypeVar("Inner", bound=Engine)


class EngineWrapper(Generic[Inner]):
    """Passes on the calls that do not depend on the arrays of the network; :mod:`snnc.backends.runtime.engine` describes all methods."""

    def __init__(self, engine: Inner) -> None:
        self.engine = engine

    @property
    def steps(self) -> int | None:
        return self.engine.steps

    @property
    def batch(self) -> int | None:
        return self.engine.batch

    def counters(self) -> dict[str, int]:
        return self.engine.counters()

    def profile(self) -> dict[str, Any]:
        return profile_of(self.engine)

    def close(self) -> None:
        self.engine.close()
