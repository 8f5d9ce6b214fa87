"""The library of neuron models, one file a family, in the language of :mod:`snnc.compiler.neurons.neuron`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from snnc.compiler.neurons.library.alif import ALIF
from snnc.compiler.neurons.library.alpha import Alpha
from snnc.compiler.neurons.library.cuba_lif import CubaLIF
from snnc.compiler.neurons.library.dropout import Dropout
from snnc.compiler.neurons.library.integrators import LI, I
from snnc.compiler.neurons.library.joins import JoinAnd, JoinIAnd
from snnc.compiler.neurons.library.lapicque import Lapicque
from snnc.compiler.neurons.library.lif import IF, LIF
from snnc.compiler.neurons.library.slstm import SLSTM
from snnc.compiler.neurons.library.stateless import Identity, Quotient, Relay, Threshold
from snnc.compiler.neurons.neuron import NeuronModel

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
    Dropout,
)
"""Every neuron of the library, in the order of the documentation."""

__all__ = [
    "ALIF",
    "IF",
    "LI",
    "LIBRARY",
    "LIF",
    "SLSTM",
    "Alpha",
    "CubaLIF",
    "Dropout",
    "I",
    "Identity",
    "JoinAnd",
    "JoinIAnd",
    "Lapicque",
    "Quotient",
    "Relay",
    "Threshold",
]
