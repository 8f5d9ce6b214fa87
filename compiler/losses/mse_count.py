"""Squared error of the spike counts: ``snntorch.functional.mse_count_loss``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.base import Classes, LossPort, Reals


@dataclass(frozen=True)
class MeanSquaredCount:
    """``mean((count - wanted)**2) / T`` with ``wanted = int(T * rate)``, over the batch and the classes.

    Parameters
    ----------
    correct_rate, incorrect_rate
        Fraction of steps at which the neuron of the right class, or of a wrong class, should fire.

    Raises
    ------
    UnknownLossError
        A rate is not in 0 … 1.
    """

    correct_rate: float = 1.0
    incorrect_rate: float = 0.0
    name: ClassVar[str] = "mse_count"
    port: ClassVar[LossPort] = "spikes"

    def __post_init__(self) -> None:
        for rate in (self.correct_rate, self.incorrect_rate):
            if not (math.isfinite(rate) and 0 <= rate <= 1):
                raise UnknownLossError(f"a rate of the loss 'mse_count' is {rate:g}; it must be between 0 and 1.")

    def value_and_gradient(self, output: Reals, target: Classes) -> tuple[float, Reals]:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        steps, batch, classes = output.shape
        error = self.scores(output) - int(steps * self.incorrect_rate)
        error[np.arange(batch), target] += int(steps * self.incorrect_rate) - int(steps * self.correct_rate)
        gradient = error * output.dtype.type(2 / (batch * classes * steps))
        return float((error * error).mean()) / steps, np.broadcast_to(gradient, output.shape).copy()

    def scores(self, output: Reals) -> Reals:
        """Return the counts."""
        return np.asarray(output.sum(axis=0))
