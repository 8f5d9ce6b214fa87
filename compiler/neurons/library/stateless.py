"""Populations without states: identity, relay, quotient, threshold, and joins of a residual block with its shortcut."""

from __future__ import annotations

from typing import Final

from snnc.compiler.neurons.library.resets import spike_function
from snnc.compiler.neurons.neuron import NeuronModel, neuron

BLOCK: Final = "block"
SHORTCUT: Final = "shortcut"
"""Input ports of a join: the spikes of the residual block, and those that bypass it."""


def Identity() -> NeuronModel:  # noqa: N802 - named like the neurons
    """Pass the current on: ``y = i``, as a Relay does; for networks that users write (snnc inserts only relays)."""
    return neuron("Identity", equations="y = i", output="y")


def Relay() -> NeuronModel:  # noqa: N802 - named like the neurons
    """Sum the inputs and pass the sum on in the same step, ``y = i``; Add, Concat and Flatten become relays."""
    return neuron("Relay", equations="y = i", output="y")


def Quotient(divisor: float = 1.0) -> NeuronModel:  # noqa: N802 - named like the neurons
    """Divide the current and pass it on in the same step, ``y = i / divisor``; an average is a sum followed by a Quotient."""
    return neuron("Quotient", params={"divisor": divisor}, equations="y = i / divisor", output="y")


def Threshold(threshold: float = 1.0, *, strict: bool = True) -> NeuronModel:  # noqa: N802 - named like the neurons
    """Fire if the current is above `threshold` or, unless `strict`, equal to it: ``s = H(i - threshold)`` (NIR's Threshold)."""
    return neuron("Threshold", params={"threshold": threshold}, equations=f"s = {spike_function(strict)}(i - threshold)")


def JoinAnd() -> NeuronModel:  # noqa: N802 - named like the neurons
    """Spike if both inputs spike: ``s = block * shortcut``, SpikingJelly's ``cnf="AND"``."""
    return neuron("JoinAnd", inputs=(BLOCK, SHORTCUT), equations=f"s = {BLOCK} * {SHORTCUT}")


def JoinIAnd() -> NeuronModel:  # noqa: N802 - named like the neurons
    """Spike if the shortcut spikes and the block does not: ``s = (1 - block) * shortcut``, SpikingJelly's ``cnf="IAND"``."""
    return neuron("JoinIAnd", inputs=(BLOCK, SHORTCUT), equations=f"s = (1 - {BLOCK}) * {SHORTCUT}")
