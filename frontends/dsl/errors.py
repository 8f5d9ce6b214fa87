"""Errors of the Python DSL, raised at the faulty line of the user's program."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class ForeignNodeError(SnncError, code="SNNC-E110"):
    """A connection or output refers to a node of a different network, or to an object that is not a node."""


class ConnectionShapeError(SnncError, code="SNNC-E111"):
    """The sizes of a connection's two ends do not fit its weights."""


class InitialiserError(SnncError, code="SNNC-E112"):
    """A weight, bias or initialiser cannot be used."""


class SequenceError(SnncError, code="SNNC-E113"):
    """The parts of a Sequential are in an invalid order."""


class PopulationOptionError(SnncError, code="SNNC-E114"):
    """A population sets a parameter or state that its neuron model lacks, or gives it the wrong shape."""


class NetworkShapeError(SnncError, code="SNNC-E115"):
    """The shape of an input or population is not one or more positive integers."""


class EmptyNetworkError(SnncError, code="SNNC-E116"):
    """A network has no input, no population or no output."""


class ConnectionKindError(SnncError, code="SNNC-E117"):
    """The object between two nodes is neither a connection nor a list of connections."""


class ConnectionWindowError(SnncError, code="SNNC-E118"):
    """The kernel, stride, padding, dilation, channels or groups of a convolution or pooling do not fit its source."""


class SynapticDelayError(SnncError, code="SNNC-E119"):
    """The delays of a connection's weights are not whole numbers of 0 or more, or not one per weight."""


class SparseMatrixError(SnncError, code="SNNC-E120"):
    """A sparse connection has no entries, or not exactly one of a matrix, a density and a number of sources."""


class ViewError(SnncError, code="SNNC-E121"):
    """A part of a node exceeds the node's shape, is empty, or has a step."""


class GroupError(SnncError, code="SNNC-E122"):
    """The nodes of a group cannot be concatenated."""
