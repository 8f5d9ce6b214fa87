"""Cross entropy of the spike counts: ``snntorch.functional.ce_count_loss``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from snnc.compiler.losses.cross_entropy import cross_entropy


@dataclass(frozen=True)
class CrossEntropyCount:
    """Softmax cross entropy of the outputs summed over time."""

    name: ClassVar[str] = "ce_count"
    port: ClassVar[Literal["spikes", "membrane"]] = "spikes"

    def value_and_gradient(
        self, output: npt.NDArray[np.floating], target: npt.NDArray[np.integer]
    ) -> tuple[float, npt.NDArray[np.floating]]:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        loss, gradient = cross_entropy(self.scores(output), target)
        gradient /= output.dtype.type(output.shape[1])
        return float(loss.mean()), np.broadcast_to(gradient, output.shape).copy()

    def scores(self, output: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the counts."""
        scores: npt.NDArray[np.floating] = output.sum(axis=0)
        return scores
