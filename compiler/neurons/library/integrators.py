"""Integrators that do not fire: readouts."""

from __future__ import annotations

from snnc.compiler.neurons.library.resets import clamped
from snnc.compiler.neurons.neuron import NeuronModel, neuron


def LI(beta: float = 0.9, *, clamp: bool = False) -> NeuronModel:  # noqa: N802 - the name of the neuron
    """Leaky integrator: ``v' = beta v + i``; its output is v'. `clamp` keeps `beta` between 0 and 1."""
    return neuron("LI", states={"v": 0.0}, params={"beta": beta}, equations=f"v = {clamped('beta', clamp)}*v + i", output="v")


def I() -> NeuronModel:  # noqa: E743, N802 - the name of the neuron (in NIR too)
    """Integrator without leak: ``v' = v + i``; its output is v'."""
    return neuron("I", states={"v": 0.0}, equations="v = v + i", output="v")
