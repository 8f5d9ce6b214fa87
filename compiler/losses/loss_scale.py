"""Loss scaling: gradients that are computed times a number, so that small ones do not become 0 in 16 bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LossScale:
    """A factor of the loss's gradient, by which the update divides; an update with gradients that are not finite is skipped.

    The rule of a `dynamic` factor is that of torch.amp.GradScaler.

    Attributes
    ----------
    factor
        Of the first update.
    dynamic
        Whether it changes: it shrinks with each skipped update, and grows after enough others.
    growth, interval
        What it is multiplied by after so many updates in sequence that were not skipped.
    backoff
        What it is multiplied by with a skipped update.
    """

    factor: float = 65536.0
    dynamic: bool = True
    growth: float = 2.0
    interval: int = 2000
    backoff: float = 0.5


@dataclass
class ScaleState:
    """The factor in use, updates in sequence that were not skipped, and all that were."""

    factor: float
    good: int = 0
    skipped: int = 0

    def count(self, rule: LossScale, *, finite: bool) -> None:
        """Note an update, whose gradients were `finite` or not."""
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
    """Programs keep the factor as float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(factor))
