"""Loss computed outside the program: the program receives the adjoint of an output and returns gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class ExternalLoss:
    """Placeholder for the loss of a program whose backward pass starts from an adjoint given by the caller.

    Attributes
    ----------
    relays
        Labels of the relay populations whose adjoints of currents are stored at every step.
    """

    relays: tuple[str, ...] = ()

    name: ClassVar[str] = "adjoint"
    port: ClassVar[Literal["spikes", "membrane"]] = "membrane"

    def value_and_gradient(
        self, output: npt.NDArray[np.floating], target: npt.NDArray[np.integer]
    ) -> tuple[float, npt.NDArray[np.floating]]:
        """Return the value 0, and `target` as the gradient: it is the adjoint."""
        return 0.0, target.astype(output.dtype)

    def scores(self, output: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the sum over time."""
        scores: npt.NDArray[np.floating] = output.sum(axis=0)
        return scores
