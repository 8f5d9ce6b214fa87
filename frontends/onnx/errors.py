"""Errors of the ONNX frontend, one class per check; ``docs/reference/errors.md`` lists the codes."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class OnnxError(SnncError):
    """Base of the errors of :mod:`snnc.frontends.onnx`."""

    code = "SNNC-E200"


class UnreadableFileError(OnnxError):
    """The file is missing, empty, truncated or not an ONNX model."""

    code = "SNNC-E201"


class OpsetError(OnnxError):
    """The model has no opset, or its opset is too old or too new."""

    code = "SNNC-E202"


class ForeignOperatorError(OnnxError):
    """An operator is from a domain other than ONNX's own, or ONNX does not define it."""

    code = "SNNC-E203"


class ExternalDataError(OnnxError):
    """External data is missing, too short, or outside the model's folder."""

    code = "SNNC-E204"


class TensorError(OnnxError):
    """A tensor's data do not fit its declared shape or type."""

    code = "SNNC-E205"


class NotFiniteTensorError(OnnxError):
    """A weight, threshold or other constant is NaN or infinite."""

    code = "SNNC-E206"


class MalformedGraphError(OnnxError):
    """The ONNX graph itself is invalid: duplicate names, undefined inputs, a cycle, no nodes, no outputs."""

    code = "SNNC-E207"


class OnnxLimitError(OnnxError):
    """A tensor, a trip count or the unrolled graph exceeds a limit, which is checked before memory is allocated."""

    code = "SNNC-E208"


class ShapeError(OnnxError):
    """Shapes do not match."""

    code = "SNNC-E209"


class UnsupportedOperatorError(OnnxError):
    """snnc does not read an operator of the file."""

    code = "SNNC-E210"


class NotYetError(OnnxError):
    """snnc does not support this form of an operator or network yet."""

    code = "SNNC-E211"


class DataDependentError(OnnxError):
    """An index, shape, condition or trip count depends on the network's data."""

    code = "SNNC-E212"


class NoTimeError(OnnxError):
    """The file contains no time steps: a stateless network, zero steps, or too few to compare one step with another."""

    code = "SNNC-E213"


class TimeVaryingError(OnnxError):
    """Weights, parameters or operations differ from step to step."""

    code = "SNNC-E214"


class TimeMixingError(OnnxError):
    """The model does not process its sequence step by step."""

    code = "SNNC-E215"


class InitialStateError(OnnxError):
    """No initial state explains what the file computes in its first steps."""

    code = "SNNC-E216"


class ReadoutError(OnnxError):
    """An output is neither a value of a step nor a known reduction over the steps."""

    code = "SNNC-E217"


class StatePairError(OnnxError):
    """State inputs and outputs of a single-step file cannot be paired."""

    code = "SNNC-E218"


class StepGraphError(OnnxError):
    """The recovered step cannot be written as a graph (cycle without delay, mixed shapes)."""

    code = "SNNC-E219"


class StateLossError(OnnxError):
    """The file has spiking neurons but no state carried between steps: the export lost it."""

    code = "SNNC-E220"


class NotGenericError(OnnxError):
    """A dimension declared as dynamic changes the recovered network."""

    code = "SNNC-E221"


class SelfCheckError(OnnxError):
    """The recovered network computes something different from the file."""

    code = "SNNC-E223"


class UnforeseenError(OnnxError):
    """Reading the file failed with an unexpected error."""

    code = "SNNC-E224"


class DescriptionError(OnnxError):
    """The network described by snnc in the file differs from the file in inputs, outputs or sizes."""

    code = "SNNC-E262"


class DetachError(OnnxError):
    """A rule for where gradients stop is unknown, or the model itself defines where they stop."""

    code = "SNNC-E270"
