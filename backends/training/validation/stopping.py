"""Choice of the best epoch, and early stopping, from the validation results so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from snnc.backends.runtime.errors import TrainingOptionError
from snnc.backends.training.plan import check_count

Monitor: TypeAlias = Literal["loss", "accuracy"]
MONITORS: Final = get_args(Monitor)


@dataclass(frozen=True)
class Stopping:
    """Rule for the best epoch and for early stopping; arguments of :meth:`snnc.backends.session.BackendSession.fit`.

    It has no state: each decision is computed from `validated`, the validation loss and accuracy of each epoch, which checkpoints store.
    """

    monitor: Monitor = "loss"
    patience: int | None = None
    min_delta: float = 0.0

    def __post_init__(self) -> None:
        if self.monitor not in MONITORS:
            raise TrainingOptionError(f"monitor is {self.monitor!r}; it must be one of {', '.join(map(repr, MONITORS))}.")
        if self.patience is not None:
            check_count("patience", self.patience, 1)
        delta = self.min_delta
        if isinstance(delta, bool) or not isinstance(delta, int | float) or not (math.isfinite(delta) and delta >= 0):
            raise TrainingOptionError(f"min_delta is {delta!r}; it must be a number of 0 or more.")

    def best(self, validated: Sequence[tuple[float, float]]) -> int | None:
        """Return the index of the best epoch (the first of equal ones); None without epochs, or if all values are NaN."""
        costs = self._costs(validated)
        finite = [cost for cost in costs if not math.isnan(cost)]
        return costs.index(min(finite)) if finite else None

    def stops(self, validated: Sequence[tuple[float, float]]) -> bool:
        """Return whether training stops after these epochs."""
        if self.patience is None:
            return False
        best, idle = math.inf, 0
        for cost in self._costs(validated):
            best, idle = (cost, 0) if cost < best - self.min_delta or (cost < best and math.isinf(best)) else (best, idle + 1)
        return idle >= self.patience

    def _costs(self, validated: Sequence[tuple[float, float]]) -> list[float]:
        """Return the monitored value of each epoch, with a sign such that smaller is better."""
        return [loss if self.monitor == "loss" else -accuracy for loss, accuracy in validated]
