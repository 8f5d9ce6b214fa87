"""Neuron models of the library, one file per family, written as equations (:mod:`snnc.compiler.neurons.neuron`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from snnc.compiler.neurons.library.alif import ALIF
from snnc.compiler.neurons.library.alpha import Alpha
from snnc.compiler.neurons.library.dropout import Dropout
from snnc.compiler.neurons.library.lapicque import Lapicque
from snnc.compiler.neurons.library.lif import IF, LI, LIF, CubaLIF, I
from snnc.compiler.neurons.library.slstm import LSTM, SLSTM
from snnc.compiler.neurons.library.stateless import Identity, JoinAnd, JoinIAnd, Quotient, Relay, Threshold
from snnc.compiler.neurons.neuron import NeuronModel

LIBRARY: Final[tuple[Callable[[], NeuronModel], ...]] = (
    *(IF, LIF, CubaLIF, ALIF, Alpha, Lapicque, LI, I),
    *(SLSTM, LSTM, Identity, Relay, Quotient, Threshold, Dropout),
)
"""Neurons of the library in the order of the documentation, without joins of shortcuts (JoinAnd, JoinIAnd) and batch normalisation."""

__all__ = [
    "ALIF",
    "IF",
    "LI",
    "LIBRARY",
    "LIF",
    "LSTM",
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
