"""Interface of losses: the attributes that backends read, and a reference in NumPy of the value and the gradient."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Reals: TypeAlias = npt.NDArray[np.floating]
Classes: TypeAlias = npt.NDArray[np.integer]
LossPort: TypeAlias = Literal["spikes", "membrane"]
"""What a loss reads of a population: its spikes, or its membrane potentials."""


class Loss(Protocol):
    """A scalar loss of one output over a sequence; `name` selects the template of its code, and a named loss on the command line."""

    name: ClassVar[str]

    @property
    def port(self) -> LossPort:
        """Port of the last population that the loss reads: spikes, or membrane potential."""

    def value_and_gradient(self, output: Reals, target: Any) -> tuple[float, Reals]:
        """Return the loss, averaged over the batch, and its gradient with respect to `output`, with the same shape and dtype.

        Parameters
        ----------
        output
            [T, B, classes]: spikes or membrane potentials of every step.
        target
            [B] class indices; for a :class:`~snnc.compiler.losses.composed.Composed` loss, an array of the kind in its `targets`.
        """

    def scores(self, output: Reals) -> Reals:
        """Return scores [B, classes]; the class with the largest score is the prediction."""
