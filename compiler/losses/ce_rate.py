"""Cross entropy at each step: ``snntorch.functional.ce_rate_loss``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from snnc.compiler.losses.cross_entropy import cross_entropy


@dataclass(frozen=True)
class CrossEntropyRate:
    """Softmax cross entropy of the outputs of every step, averaged over the steps."""

    name: ClassVar[str] = "ce_rate"
    port: ClassVar[Literal["spikes", "membrane"]] = "spikes"

    def value_and_gradient(
        self, output: npt.NDArray[np.floating], target: npt.NDArray[np.integer]
    ) -> tuple[float, npt.NDArray[np.floating]]:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        loss, gradient = cross_entropy(output, target)
        gradient /= output.dtype.type(output.shape[0] * output.shape[1])
        return float(loss.mean()), gradient

    def scores(self, output: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the sums over time."""
        scores: npt.NDArray[np.floating] = output.sum(axis=0)
        return scores
