"""Errors of the Python DSL; each is raised at the line of the user's program that wrote the fault."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class ForeignNodeError(SnncError):
    """A connection or output names a node that belongs to another network, or none."""

    code = "SNNC-E110"


class ConnectionShapeError(SnncError):
    """The sizes of the two ends of a connection do not fit its weights."""

    code = "SNNC-E111"


class InitialiserError(SnncError):
    """A weight, bias or initialiser cannot be used."""

    code = "SNNC-E112"


class SequenceError(SnncError):
    """The parts of a Sequential do not follow one another."""

    code = "SNNC-E113"


class PopulationOptionError(SnncError):
    """A population sets a parameter or state that its neuron model lacks, or with another shape."""

    code = "SNNC-E114"


class NetworkShapeError(SnncError):
    """The shape of an input or population is not one or more positive integers."""

    code = "SNNC-E115"


class EmptyNetworkError(SnncError):
    """A network has no input, no population or no output."""

    code = "SNNC-E116"


class ConnectionKindError(SnncError):
    """A connection is neither Dense nor OneToOne."""

    code = "SNNC-E117"
