"""The library of neuron models, one file a family, in the language of :mod:`snnc.compiler.neuron`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from snnc.compiler.neuron import NeuronModel
from snnc.compiler.neurons.alif import ALIF
from snnc.compiler.neurons.alpha import Alpha
from snnc.compiler.neurons.cuba_lif import CubaLIF
from snnc.compiler.neurons.integrators import LI, I
from snnc.compiler.neurons.lapicque import Lapicque
from snnc.compiler.neurons.lif import IF, LIF
from snnc.compiler.neurons.slstm import SLSTM
from snnc.compiler.neurons.stateless import Identity, Quotient, Relay, Threshold

LIBRARY: Final[tuple[Callable[[], NeuronModel], ...]] = (
    IF,
    LIF,
    CubaLIF,
    ALIF,
    Alpha,
    Lapicque,
    LI,
    I,
    SLSTM,
    Identity,
    Relay,
    Quotient,
    Threshold,
)
"""Every neuron of the library, in the order of the documentation."""

__all__ = ["ALIF", "IF", "LI", "LIBRARY", "LIF", "SLSTM", "Alpha", "CubaLIF", "I", "Identity", "Lapicque", "Quotient", "Relay", "Threshold"]
