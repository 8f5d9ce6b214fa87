"""Cross entropy of the membrane averaged over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from snnc.compiler.losses.cross_entropy import cross_entropy


@dataclass(frozen=True)
class CrossEntropyMeanMembrane:
    """Softmax cross entropy of the mean of the outputs over time."""

    name: ClassVar[str] = "ce_mean_membrane"
    port: ClassVar[Literal["spikes", "membrane"]] = "membrane"

    def value_and_gradient(
        self, output: npt.NDArray[np.floating], target: npt.NDArray[np.integer]
    ) -> tuple[float, npt.NDArray[np.floating]]:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        loss, gradient = cross_entropy(self.scores(output), target)
        gradient /= output.dtype.type(output.shape[0] * output.shape[1])
        return float(loss.mean()), np.broadcast_to(gradient, output.shape).copy()

    def scores(self, output: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the means."""
        scores: npt.NDArray[np.floating] = output.mean(axis=0)
        return scores
