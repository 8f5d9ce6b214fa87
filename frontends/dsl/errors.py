"""Errors of networks written in Python, raised at the faulty line of the user's program."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class ForeignNodeError(SnncError, code="SNNC-E110"):
    """A connection or output refers to a node of a different network, or to an object that is not a node."""


class ConnectionShapeError(SnncError, code="SNNC-E111"):
    """The shapes of a connection's source, target and weights do not fit, its number of outputs is unknown, or it has too many weights."""


class InitialiserError(SnncError, code="SNNC-E112"):
    """A weight, bias, initialiser or seed cannot be used."""


class SequenceError(SnncError, code="SNNC-E113"):
    """The layers of a Sequential are in an invalid order, one is not a layer, or one does not define its number of outputs."""


class PopulationOptionError(SnncError, code="SNNC-E114"):
    """A population's model is invalid or lacks a named parameter, state or output; or a value is not finite or has the wrong shape."""


class NetworkShapeError(SnncError, code="SNNC-E115"):
    """The shape of an input or population is not one or more positive integers, or the shapes of joined nodes differ."""


class EmptyNetworkError(SnncError, code="SNNC-E116"):
    """A network has no input, no population or no output."""


class ConnectionKindError(SnncError, code="SNNC-E117"):
    """The argument for a connection between two nodes is neither a connection nor a list of one or more connections."""


class ConnectionWindowError(SnncError, code="SNNC-E118"):
    """The kernel, stride, padding, dilation, channels or groups of a convolution or pooling do not fit its source."""


class SynapticDelayError(SnncError, code="SNNC-E119"):
    """The delays of a connection's weights are not whole numbers of 0 or more, or not one per weight."""


class SparseMatrixError(SnncError, code="SNNC-E120"):
    """A sparse connection does not have exactly one valid matrix, density or fan-in, or it has no entries."""


class ViewError(SnncError, code="SNNC-E121"):
    """A part of a node exceeds the node's shape, is empty, or is a slice with a step other than 1."""


class GroupError(SnncError, code="SNNC-E122"):
    """The nodes of a group cannot be concatenated."""
