"""A loss that is computed outside the program: the program takes the adjoint of an output and returns gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class ExternalLoss:
    """Replaces the loss of a program, whose backward pass begins with the adjoint that a caller gives.

    Attributes
    ----------
    relays
        Labels of the populations whose currents' adjoints are stored at every step.
    """

    relays: tuple[str, ...] = ()

    name: ClassVar[str] = "adjoint"
    port: ClassVar[Literal["spikes", "membrane"]] = "membrane"

    def value_and_gradient(
        self, output: npt.NDArray[np.floating], target: npt.NDArray[np.integer]
    ) -> tuple[float, npt.NDArray[np.floating]]:
        """Return 0 as value; `target` is the adjoint."""
        return 0.0, target.astype(output.dtype)

    def scores(self, output: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the sum over time."""
        scores: npt.NDArray[np.floating] = output.sum(axis=0)
        return scores
