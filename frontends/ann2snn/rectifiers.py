"""Populations of a ReLU network, and of its spiking counterpart."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Population, Shape
from snnc.compiler.neurons.library import IF, I
from snnc.compiler.neurons.neuron import NeuronModel, neuron
from snnc.compiler.neurons.surrogates.library import straight_through

THRESHOLD: Final = 1.0
"""Threshold of all neurons; the weights of each layer are scaled to it."""
START: Final = 0.5
"""Initial membrane potential, half the threshold, so that rates are rounded to nearest and not down (Deng & Gu 2021; Bu et al. 2022)."""


def rectifier(shape: Shape, ceiling: float | None = None) -> Population:
    """Return stateless units ``y = max(i, 0)``, limited to `ceiling` if given."""
    if ceiling is None:
        return Population(neuron("ReLU", equations="y = max(i, 0)", output="y"), shape)
    model = neuron("ClippedReLU", params={"ceiling": ceiling}, equations="y = min(max(i, 0), ceiling)", output="y")
    return Population(model, shape)


def spiking(shape: Shape) -> Population:
    """Return integrate-and-fire neurons with reset by subtraction, which preserves the integrated charge.

    ::

        v' = v + i
        s  = H(v' - 1), with H(0) = 1
        v  = v' - s

    With a constant current i, T steps contain ``floor(1/2 + T i)`` spikes, but at least 0 and at most T.
    """
    model = IF(THRESHOLD, reset_delay=False, strict=False)
    return Population(model, shape, initial={"v": np.array(START, np.float32)})


def counter(shape: Shape) -> Population:
    """Return integrators that sum their inputs over the steps."""
    return Population(I(), shape)


def increment(shape: Shape, binary: bool) -> Population:
    """Return units that output the growth of their input since the previous step.

    Parameters
    ----------
    shape
        Shape of the population.
    binary
        Whether the input grows by 0 or 1 per step. The output is then a spike, with a straight-through surrogate derivative.
    """
    return Population(_GROWN_SPIKES if binary else _GROWN, shape, surrogate=straight_through() if binary else None)


_GROWN: Final[NeuronModel] = neuron("Increment", states={"m": 0.0}, equations="y = i - m\nm = i", output="y")
_GROWN_SPIKES: Final[NeuronModel] = neuron("Increment", states={"m": 0.0}, equations="s = spike(i - m - 0.5)\nm = i", output="s")
