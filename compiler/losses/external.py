"""Loss computed outside the program: the program receives the adjoint of an output and returns gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from snnc.compiler.losses.base import LossPort, Reals


@dataclass(frozen=True)
class ExternalLoss:
    """Placeholder for the loss of a program whose backward pass starts from an adjoint that the caller gives.

    `relays` are the labels of the relay populations whose adjoints of currents are stored at every step: the gradients of inputs.
    """

    relays: tuple[str, ...] = ()

    name: ClassVar[str] = "adjoint"
    port: ClassVar[LossPort] = "membrane"

    def value_and_gradient(self, output: Reals, target: Reals) -> tuple[float, Reals]:
        """Return the value 0, and as the gradient `target`, which is the adjoint."""
        return 0.0, target.astype(output.dtype)

    def scores(self, output: Reals) -> Reals:
        """Return the sums over time."""
        return np.asarray(output.sum(axis=0))
