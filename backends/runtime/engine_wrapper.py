"""Base of engines that present another one in a different form."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from snnc.backends.runtime.engine import Engine, profile_of

Inner = TypeVar("Inner", bound=Engine)


class EngineWrapper(Generic[Inner]):
    """What a wrapper passes on as it is; see :class:`~snnc.backends.runtime.engine.Engine`."""

    def __init__(self, engine: Inner) -> None:
        self.engine = engine

    @property
    def steps(self) -> int | None:
        """T of its sequences."""
        return self.engine.steps

    @property
    def batch(self) -> int | None:
        """B of its sequences."""
        return self.engine.batch

    def counters(self) -> dict[str, int]:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        return self.engine.counters()

    def profile(self) -> dict[str, Any]:
        """The engine's own report."""
        return profile_of(self.engine)

    def close(self) -> None:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        self.engine.close()
