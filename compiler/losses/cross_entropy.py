"""Softmax cross entropies of a recorded output: each defines scores of a sequence, and spreads their gradient over the steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from snnc.compiler.losses.base import Classes, LossPort, Reals


def cross_entropy(scores: Reals, target: Classes) -> tuple[Reals, Reals]:
    """Return the cross entropy of each row and its gradient with respect to `scores`.

    Parameters
    ----------
    scores
        [..., B, classes].
    target
        [B]: class indices.

    Returns
    -------
    array, array
        [..., B] and [..., B, classes]; not averaged.
    """
    shifted = scores - scores.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    rows = np.arange(scores.shape[-2])
    gradient = np.exp(log_p)
    gradient[..., rows, target] -= 1
    return -log_p[..., rows, target], gradient


class _CrossEntropyOfScores(ABC):
    """Softmax cross entropy of the scores of a sequence."""

    @abstractmethod
    def scores(self, output: Reals) -> Reals:
        """See :class:`~snnc.compiler.losses.base.Loss`."""

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

    def scores(self, output: Reals) -> Reals:
        """Return the counts."""
        return np.asarray(output.sum(axis=0))


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
        found = np.zeros_like(output)
        np.put_along_axis(found, output.argmax(axis=0)[None], gradient[None], axis=0)
        return found


@dataclass(frozen=True)
class CrossEntropyRate:
    """Softmax cross entropy of the outputs of every step, averaged over the steps: ``snntorch.functional.ce_rate_loss``."""

    name: ClassVar[str] = "ce_rate"
    port: ClassVar[LossPort] = "spikes"

    def value_and_gradient(self, output: Reals, target: Classes) -> tuple[float, Reals]:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        loss, gradient = cross_entropy(output, target)
        gradient /= output.dtype.type(output.shape[0] * output.shape[1])
        return float(loss.mean()), gradient

    def scores(self, output: Reals) -> Reals:
        """Return the sums over time."""
        return np.asarray(output.sum(axis=0))
