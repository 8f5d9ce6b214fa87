"""Errors of the Python DSL, raised at the faulty line of the user's program."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class ForeignNodeError(SnncError):
    """A connection or output refers to a node of a different network, or to an object that is not a node."""

    code = "SNNC-E110"


class ConnectionShapeError(SnncError):
    """The sizes of a connection's two ends do not fit its weights."""

    code = "SNNC-E111"


class InitialiserError(SnncError):
    """A weight, bias or initialiser cannot be used."""

    code = "SNNC-E112"


class SequenceError(SnncError):
    """The parts of a Sequential are in an invalid order."""

    code = "SNNC-E113"


class PopulationOptionError(SnncError):
    """A population sets a parameter or state that its neuron model lacks, or gives it the wrong shape."""

    code = "SNNC-E114"


class NetworkShapeError(SnncError):
    """The shape of an input or population is not one or more positive integers."""

    code = "SNNC-E115"


class EmptyNetworkError(SnncError):
    """A network has no input, no population or no output."""

    code = "SNNC-E116"


class ConnectionKindError(SnncError):
    """The object between two nodes is neither a connection nor a list of connections."""

    code = "SNNC-E117"


class ConnectionWindowError(SnncError):
    """The kernel, stride, padding, dilation, channels or groups of a convolution or pooling do not fit its source."""

    code = "SNNC-E118"


class SynapticDelayError(SnncError):
    """The delays of a connection's weights are not whole numbers of 0 or more, or not one per weight."""

    code = "SNNC-E119"


class SparseMatrixError(SnncError):
    """A sparse connection has no entries, or not exactly one of a matrix, a density and a number of sources."""

    code = "SNNC-E120"


class ViewError(SnncError):
    """A part of a node exceeds the node's shape, is empty, or has a step."""

    code = "SNNC-E121"


class GroupError(SnncError):
    """The nodes of a group cannot be concatenated."""

    code = "SNNC-E122"
