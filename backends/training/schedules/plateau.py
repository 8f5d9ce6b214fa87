"""A schedule that depends on the validation loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from snnc.backends.training.schedules.base import Schedule, ScheduleError, TrainingPosition, check_numbers, check_whole_numbers, is_number


@dataclass(frozen=True)
class Plateau(Schedule):
    """A value that is reduced when the validation loss stops falling, like torch.optim.lr_scheduler.ReduceLROnPlateau in mode ``min``.

    It has no state: its value is computed from the validation losses of all epochs so far, which checkpoints store.

    Attributes
    ----------
    first
        Initial value.
    factor
        Factor of a reduction, below 1.
    patience
        Number of consecutive epochs without an improvement that do not change the value; the next one reduces it.
    threshold, threshold_mode
        A loss counts as an improvement if it is below ``best * (1 - threshold)`` (``"rel"``) or ``best - threshold`` (``"abs"``).
    cooldown
        Number of epochs after a reduction that do not count towards `patience`.
    min_lr
        Lower bound of a reduced value.
    eps
        Reductions by this much or less are skipped.
    """

    first: float
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    threshold_mode: Literal["rel", "abs"] = "rel"
    cooldown: int = 0
    min_lr: float = 0.0
    eps: float = 1e-8

    def __post_init__(self) -> None:
        check_numbers(self, "first", "min_lr")
        check_numbers(self, "threshold", "eps", least=0)
        if not is_number(self.factor) or not 0 <= self.factor < 1:
            raise ScheduleError(f"factor of Plateau is {self.factor!r}; it must be at least 0 and below 1.")
        check_whole_numbers(self, "patience", "cooldown", least=0)
        if self.threshold_mode not in ("rel", "abs"):
            raise ScheduleError(f"threshold_mode of Plateau is {self.threshold_mode!r}; it must be 'rel' or 'abs'.")

    def at(self, when: TrainingPosition) -> float:
        if when.losses is None:
            raise ScheduleError("Plateau needs a validation loss; give fit(validation=(x, y)).")
        value, best, bad, resting = float(self.first), math.inf, 0, 0
        for loss in when.losses:
            bound = best * (1 - self.threshold) if self.threshold_mode == "rel" else best - self.threshold
            best, bad = (loss, 0) if loss < bound else (best, bad + 1)
            if resting > 0:
                resting, bad = resting - 1, 0
            if bad > self.patience:
                smaller = max(value * self.factor, self.min_lr)
                value, resting, bad = smaller if value - smaller > self.eps else value, self.cooldown, 0
        return value
