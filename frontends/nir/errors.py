"""Errors of the NIR frontend, one class per check; ``docs/reference/errors.md`` lists the codes."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class NirError(SnncError, code="SNNC-E700"):
    """Any error in reading, writing or interpreting a NIR file."""


class UnreadableNirError(NirError, code="SNNC-E701"):
    """The file is missing, truncated, damaged or not HDF5."""


class NotNirError(NirError, code="SNNC-E702"):
    """The file is HDF5 but contains no NIR graph."""


class NirLinkError(NirError, code="SNNC-E703"):
    """The file refers to data outside itself or through an indirection: a link, a virtual or external dataset."""


class NirTooLargeError(NirError, code="SNNC-E704"):
    """A dataset or the number of nodes, fields, edges or chunks exceeds a limit, or the file needs more memory than is available."""


class NirNodeTypeError(NirError, code="SNNC-E705"):
    """NIR does not define a node's type."""


class NirFieldError(NirError, code="SNNC-E706"):
    """A field of a node is missing or unknown, or has an invalid kind or value."""


class NirNotFiniteError(NirError, code="SNNC-E707"):
    """A weight or parameter is NaN, infinite, or too large for float32."""


class NirTimeConstantError(NirError, code="SNNC-E708"):
    """A time constant is zero or negative."""


class NirEdgeError(NirError, code="SNNC-E709"):
    """An edge refers to a missing node, is a duplicate, enters an input, leaves an output, or is not a pair of names."""


class NirShapeError(NirError, code="SNNC-E710"):
    """The shapes of two connected nodes, or of a node's fields, do not match."""


class NirCycleError(NirError, code="SNNC-E711"):
    """A cycle contains neither a neuron nor a delay, so its values are undefined."""


class NirNestingError(NirError, code="SNNC-E712"):
    """Graphs are nested too deeply, contain themselves, or do not have exactly one input or output for an edge."""


class NirDialectError(NirError, code="SNNC-E713"):
    """The dialect is unknown."""


class NirTimeStepError(NirError, code="SNNC-E714"):
    """The time step is not a positive number, or is too short for the file's delays."""


class NirUnconnectedError(NirError, code="SNNC-E715"):
    """The graph has no edges, no input or no output, or an input, an output or an end of a nested graph is not connected."""


class NotInNirError(NirError, code="SNNC-E716"):
    """NIR cannot express an operation, a neuron or an edge of the network."""


class NirWriteError(NirError, code="SNNC-E717"):
    """The file cannot be written."""


class NirSimulationError(NirError, code="SNNC-E718"):
    """The reference interpreter cannot run the file, or the arrays do not match its inputs."""


class NirDescriptionError(NirError, code="SNNC-E719"):
    """The network described by snnc in the file differs from that of the file's nodes, or cannot be compared with it."""
