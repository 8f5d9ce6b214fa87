"""Loss scaling: multiply the gradient of the loss by a factor, so that small gradients do not underflow in 16 bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LossScale:
    """Factor of the gradient of the loss, by which the update divides gradients; an update with infinite or NaN gradients is skipped.

    The default values are those of torch.amp.GradScaler.

    Attributes
    ----------
    factor
        Factor of the first update.
    dynamic
        Whether the factor changes, by the rule of torch.amp.GradScaler.
    growth, interval
        The factor is multiplied by `growth` after `interval` consecutive updates that were not skipped.
    backoff
        The factor is multiplied by `backoff` after a skipped update.
    """

    factor: float = 65536.0
    dynamic: bool = True
    growth: float = 2.0
    interval: int = 2000
    backoff: float = 0.5


@dataclass
class ScaleState:
    """Current factor, number of consecutive updates that were not skipped, and total number of skipped updates."""

    factor: float
    good: int = 0
    skipped: int = 0

    def count(self, rule: LossScale, *, finite: bool) -> None:
        """Count an update; `finite`: whether its gradients were finite."""
        self.skipped += not finite
        if not rule.dynamic:
            return
        self.good = self.good + 1 if finite else 0
        if not finite:
            self.factor = _rounded(self.factor * rule.backoff)
        elif self.good == rule.interval:
            grown = _rounded(self.factor * rule.growth)
            self.factor, self.good = grown if math.isfinite(grown) else self.factor, 0


def _rounded(factor: float) -> float:
    """Round a factor to float32, as programs store it."""
    with np.errstate(over="ignore"):
        return float(np.float32(factor))
