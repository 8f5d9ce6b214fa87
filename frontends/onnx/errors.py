"""Errors of the ONNX frontend, one class per check; ``docs/reference/errors.md`` lists the codes."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class OnnxError(SnncError, code="SNNC-E200"):
    """Any error in reading an ONNX file."""


class UnreadableFileError(OnnxError, code="SNNC-E201"):
    """The file is missing, empty, truncated, too large, not a regular file or not an ONNX model."""


class OpsetError(OnnxError, code="SNNC-E202"):
    """The model has no opset, or its opset is too old or too new."""


class ForeignOperatorError(OnnxError, code="SNNC-E203"):
    """An operator is from a domain other than ONNX's own, or ONNX does not define it."""


class ExternalDataError(OnnxError, code="SNNC-E204"):
    """External data is missing, too short, or outside the model's folder."""


class TensorError(OnnxError, code="SNNC-E205"):
    """A tensor's data do not fit its declared shape or type, or snnc does not read its type or storage."""


class NotFiniteTensorError(OnnxError, code="SNNC-E206"):
    """A weight, threshold or other constant is NaN or infinite."""


class MalformedGraphError(OnnxError, code="SNNC-E207"):
    """The ONNX graph itself is invalid: duplicate names, undefined inputs, a cycle, no nodes, no outputs."""


class OnnxLimitError(OnnxError, code="SNNC-E208"):
    """A tensor, a number of steps, the unrolled graph or its computation exceeds a limit, or there is too little memory for the file."""


class ShapeError(OnnxError, code="SNNC-E209"):
    """Shapes do not match."""


class UnsupportedOperatorError(OnnxError, code="SNNC-E210"):
    """snnc does not read an operator of the file."""


class NotYetError(OnnxError, code="SNNC-E211"):
    """snnc does not support this form of an operator or network yet."""


class DataDependentError(OnnxError, code="SNNC-E212"):
    """An index, shape, condition or trip count depends on the network's data."""


class NoTimeError(OnnxError, code="SNNC-E213"):
    """The file contains no time steps: a stateless network, zero steps, or too few to compare one step with another."""


class TimeVaryingError(OnnxError, code="SNNC-E214"):
    """Weights, parameters or operations differ from step to step."""


class TimeMixingError(OnnxError, code="SNNC-E215"):
    """The model does not process its sequence step by step."""


class InitialStateError(OnnxError, code="SNNC-E216"):
    """No initial state explains what the file computes in its first steps."""


class ReadoutError(OnnxError, code="SNNC-E217"):
    """An output is constant, or neither a value of each step nor a known reduction over the steps."""


class StatePairError(OnnxError, code="SNNC-E218"):
    """State inputs and outputs of a single-step file cannot be paired."""


class StepGraphError(OnnxError, code="SNNC-E219"):
    """The recovered step is not a valid graph: for example, it has a cycle without delay, or mixes the samples of a batch."""


class StateLossError(OnnxError, code="SNNC-E220"):
    """The file has spiking neurons but no state carried between steps: the export lost it."""


class NotGenericError(OnnxError, code="SNNC-E221"):
    """A dimension declared as dynamic changes the recovered network."""


class SelfCheckError(OnnxError, code="SNNC-E223"):
    """The recovered network computes something different from the file."""


class UnforeseenError(OnnxError, code="SNNC-E224"):
    """Reading the file failed with an unexpected error."""


class DescriptionError(OnnxError, code="SNNC-E262"):
    """The network described by snnc in the file does not fit the file, or takes too long to compare with it."""


class DetachError(OnnxError, code="SNNC-E270"):
    """A rule for where gradients stop is unknown, or the model itself defines where they stop."""
