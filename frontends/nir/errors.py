"""Errors of the NIR frontend, one class per check; ``docs/reference/errors.md`` lists the codes."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class NirError(SnncError):
    """Base of the errors of :mod:`snnc.frontends.nir`."""

    code = "SNNC-E700"


class UnreadableNirError(NirError):
    """The file is missing, truncated, damaged or not HDF5."""

    code = "SNNC-E701"


class NotNirError(NirError):
    """The file is HDF5 but contains no NIR graph."""

    code = "SNNC-E702"


class NirLinkError(NirError):
    """The file refers to data outside itself or through an indirection: a link, a virtual or external dataset."""

    code = "SNNC-E703"


class NirTooLargeError(NirError):
    """A dataset, the number of nodes or a delay exceeds a limit, which is checked before memory is allocated."""

    code = "SNNC-E704"


class NirNodeTypeError(NirError):
    """NIR does not define a node's type."""

    code = "SNNC-E705"


class NirFieldError(NirError):
    """A field of a node is missing or unknown, or has an invalid kind or value."""

    code = "SNNC-E706"


class NirNotFiniteError(NirError):
    """A weight or parameter is NaN, infinite, or too large for float32."""

    code = "SNNC-E707"


class NirTimeConstantError(NirError):
    """A time constant is zero or negative."""

    code = "SNNC-E708"


class NirEdgeError(NirError):
    """An edge refers to a missing node, is a duplicate, or is not a pair of names."""

    code = "SNNC-E709"


class NirShapeError(NirError):
    """The shapes of two connected nodes, or of a node's fields, do not match."""

    code = "SNNC-E710"


class NirCycleError(NirError):
    """A cycle contains neither a neuron nor a delay, so its values are undefined."""

    code = "SNNC-E711"


class NirNestingError(NirError):
    """Graphs are nested too deeply, contain themselves, or do not have exactly one input or output for an edge."""

    code = "SNNC-E712"


class NirDialectError(NirError):
    """The dialect is unknown."""

    code = "SNNC-E713"


class NirTimeStepError(NirError):
    """The time step is not a positive number, or is too short for the file's delays."""

    code = "SNNC-E714"


class NirUnconnectedError(NirError):
    """The graph has no input or no output, or a node has no incoming edge."""

    code = "SNNC-E715"


class NotInNirError(NirError):
    """NIR cannot express an operation, a neuron or an edge of the network."""

    code = "SNNC-E716"


class NirWriteError(NirError):
    """The file cannot be written."""

    code = "SNNC-E717"


class NirSimulationError(NirError):
    """The reference interpreter cannot run the file, or the arrays do not match its inputs."""

    code = "SNNC-E718"


class NirDescriptionError(NirError):
    """The network described by snnc in the file differs from that of the file's nodes."""

    code = "SNNC-E719"
