"""Losses with their own name and emitted code: softmax cross entropies of a recorded output, and the squared error of spike counts.

Each defines scores of a sequence and, except ``ce_rate``, distributes the gradient of the scores over the steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.base import Classes, Loss, LossPort, Reals


def cross_entropy(scores: Reals, target: Classes) -> tuple[Reals, Reals]:
    """Return the cross entropy of each row, [..., B], and its gradient with respect to `scores`, [..., B, classes]; not averaged.

    `target` contains class indices, [B].
    """
    shifted = scores - scores.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    rows = np.arange(scores.shape[-2])
    gradient = np.exp(log_p)
    gradient[..., rows, target] -= 1
    return -log_p[..., rows, target], gradient


class _CrossEntropyOfScores:
    """Softmax cross entropy of the scores of a sequence, by default the sums over time."""

    def scores(self, output: Reals) -> Reals:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        return np.asarray(output.sum(axis=0))

    def value_and_gradient(self, output: Reals, target: Classes) -> tuple[float, Reals]:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        loss, gradient = cross_entropy(self.scores(output), target)
        gradient /= output.dtype.type(self._divisor(output))
        return float(loss.mean()), self._over_steps(gradient, output)

    def _divisor(self, output: Reals) -> int:
        return int(output.shape[1])

    def _over_steps(self, gradient: Reals, output: Reals) -> Reals:
        """Return the gradient of `output`, given the gradient of the scores."""
        return np.broadcast_to(gradient, output.shape).copy()


@dataclass(frozen=True)
class CrossEntropyCount(_CrossEntropyOfScores):
    """Softmax cross entropy of the outputs summed over time: ``snntorch.functional.ce_count_loss``."""

    name: ClassVar[str] = "ce_count"
    port: ClassVar[LossPort] = "spikes"


@dataclass(frozen=True)
class CrossEntropyMeanMembrane(_CrossEntropyOfScores):
    """Softmax cross entropy of the mean of the outputs over time."""

    name: ClassVar[str] = "ce_mean_membrane"
    port: ClassVar[LossPort] = "membrane"

    def scores(self, output: Reals) -> Reals:
        """Return the means."""
        return np.asarray(output.mean(axis=0))

    def _divisor(self, output: Reals) -> int:
        return int(output.shape[0] * output.shape[1])


@dataclass(frozen=True)
class CrossEntropyMaxMembrane(_CrossEntropyOfScores):
    """Softmax cross entropy of the maximum of the outputs over time: ``snntorch.functional.ce_max_membrane_loss``.

    The gradient is assigned to the first step with the maximum.
    """

    name: ClassVar[str] = "ce_max_membrane"
    port: ClassVar[LossPort] = "membrane"

    def scores(self, output: Reals) -> Reals:
        """Return the maxima."""
        return np.asarray(output.max(axis=0))

    def _over_steps(self, gradient: Reals, output: Reals) -> Reals:
        of_outputs = np.zeros_like(output)
        np.put_along_axis(of_outputs, output.argmax(axis=0)[None], gradient[None], axis=0)
        return of_outputs


@dataclass(frozen=True)
class CrossEntropyRate(_CrossEntropyOfScores):
    """Softmax cross entropy of the outputs of every step, averaged over the steps: ``snntorch.functional.ce_rate_loss``."""

    name: ClassVar[str] = "ce_rate"
    port: ClassVar[LossPort] = "spikes"

    def value_and_gradient(self, output: Reals, target: Classes) -> tuple[float, Reals]:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        loss, gradient = cross_entropy(output, target)
        gradient /= output.dtype.type(output.shape[0] * output.shape[1])
        return float(loss.mean()), gradient


@dataclass(frozen=True)
class MeanSquaredCount:
    """snnTorch's ``mse_count_loss``: ``mean((count - wanted)**2) / T`` with ``wanted = int(T * rate)`` spikes.

    The mean is over the batch and the classes. A rate outside 0 … 1 raises an UnknownLossError.
    """

    correct_rate: float = 1.0  # share of the steps at which the neuron of the right class should fire
    incorrect_rate: float = 0.0  # share of the steps at which the neuron of a wrong class should fire
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


CROSS_ENTROPIES: Final[Mapping[str, type[Loss]]] = {
    "count": CrossEntropyCount,
    "steps": CrossEntropyRate,
    "mean": CrossEntropyMeanMembrane,
    "max": CrossEntropyMaxMembrane,
}
"""Cross entropies by the values that an equivalent :class:`~snnc.compiler.losses.term.Term` reads: counts, each step, mean or maximum."""
LOSSES: Final[tuple[type[Loss], ...]] = (*CROSS_ENTROPIES.values(), MeanSquaredCount)
"""Losses with their own name; each can be created without arguments."""
