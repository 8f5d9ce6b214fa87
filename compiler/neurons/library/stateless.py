"""Populations without a state."""

from __future__ import annotations

from snnc.compiler.neurons.neuron import NeuronModel, neuron


def Identity() -> NeuronModel:  # noqa: N802 - named like the neurons
    """Pass the current on: ``y = i``."""
    return neuron("Identity", equations="y = i", output="y")


def Relay() -> NeuronModel:  # noqa: N802 - named like the neurons
    """Sum the inputs and pass them on in the same step, ``y = i``; Add, Concat and Flatten become relays."""
    return neuron("Relay", equations="y = i", output="y")


def Quotient(divisor: float = 1.0) -> NeuronModel:  # noqa: N802 - named like the neurons
    """Divide the current and pass it on in the same step, ``y = i / divisor``; follows the sum of an average."""
    return neuron("Quotient", params={"divisor": divisor}, equations="y = i / divisor", output="y")


def Threshold(threshold: float = 1.0, *, strict: bool = True) -> NeuronModel:  # noqa: N802 - named like the neurons
    """Fire if the current is above `threshold`: ``s = H(i - threshold)`` (NIR's Threshold)."""
    return neuron("Threshold", params={"threshold": threshold}, equations=f"s = {'spike' if strict else 'spike_ge'}(i - threshold)")
