"""Cross entropy of the largest membrane of a sequence: ``snntorch.functional.ce_max_membrane_loss``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from snnc.compiler.losses.cross_entropy import cross_entropy


@dataclass(frozen=True)
class CrossEntropyMaxMembrane:
    """Softmax cross entropy of the maximum of the outputs over time; the gradient goes to the first step that holds it."""

    name: ClassVar[str] = "ce_max_membrane"
    port: ClassVar[Literal["spikes", "membrane"]] = "membrane"

    def value_and_gradient(
        self, output: npt.NDArray[np.floating], target: npt.NDArray[np.integer]
    ) -> tuple[float, npt.NDArray[np.floating]]:
        """See :class:`~snnc.compiler.losses.base.Loss`."""
        loss, at_maximum = cross_entropy(self.scores(output), target)
        at_maximum /= output.dtype.type(output.shape[1])
        gradient = np.zeros_like(output)
        np.put_along_axis(gradient, output.argmax(axis=0)[None], at_maximum[None], axis=0)
        return float(loss.mean()), gradient

    def scores(self, output: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the maxima."""
        scores: npt.NDArray[np.floating] = output.max(axis=0)
        return scores
