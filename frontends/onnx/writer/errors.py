"""Errors of the ONNX writer, one class per check."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class OnnxWriteError(SnncError):
    """Base of the errors of :mod:`snnc.frontends.onnx.writer`."""

    code = "SNNC-E230"


class OnnxFileError(OnnxWriteError):
    """The ONNX file cannot be written to this path."""

    code = "SNNC-E231"


class OpenTimeError(OnnxWriteError):
    """No input has a time axis and the network does not fix its number of steps, so the length of the loop is unknown."""

    code = "SNNC-E232"


class NameClashError(OnnxWriteError):
    """Two inputs, outputs or states of the network have the same name, but ONNX has a single name space."""

    code = "SNNC-E233"


class NoOnnxFormError(OnnxWriteError):
    """ONNX has no operators for an operation of the network."""

    code = "SNNC-E234"


class CheckerError(OnnxWriteError):
    """ONNX's checker refuses the written model, which is a fault in snnc."""

    code = "SNNC-E235"


class WeightsTooLargeError(OnnxWriteError):
    """The network without its weights, or one of its arrays, exceeds the size limit of an ONNX file."""

    code = "SNNC-E236"


class RuntimeRefusesError(OnnxWriteError):
    """ONNX Runtime cannot load the file, or fails on the given arrays."""

    code = "SNNC-E237"


class RuntimeInputError(OnnxWriteError):
    """An array for ONNX Runtime is missing, unknown or of the wrong shape."""

    code = "SNNC-E238"


class FixedSizeError(OnnxWriteError):
    """The requested number of samples or steps differs from the one fixed by the model file."""

    code = "SNNC-E239"


class HiddenTooLargeError(OnnxWriteError):
    """Comparing all layers at all steps needs more memory than snnc allows."""

    code = "SNNC-E244"


class TorchExportError(OnnxWriteError):
    """PyTorch cannot export the module."""

    code = "SNNC-E240"


class TorchModuleError(OnnxWriteError):
    """The argument is not a PyTorch module, or contains no weights."""

    code = "SNNC-E241"


class UnmatchedWeightError(OnnxWriteError):
    """A trained weight does not belong to a parameter of the PyTorch module."""

    code = "SNNC-E242"


class AmbiguousWeightError(OnnxWriteError):
    """A trained weight could belong to several parameters of the PyTorch module."""

    code = "SNNC-E243"


class HiddenStateExampleError(OnnxWriteError):
    """A single-step PyTorch module stores its states internally, but the example is not a sequence."""

    code = "SNNC-E248"


class StateLostError(OnnxWriteError):
    """A single-step PyTorch module neither stores its neurons' states nor accepts and returns them."""

    code = "SNNC-E249"


class UnknownFormError(OnnxWriteError):
    """The requested form of an ONNX file is unknown."""

    code = "SNNC-E261"


class TorchHookError(OnnxWriteError):
    """A hook of a PyTorch module changes a gradient in a way that snnc cannot reproduce."""

    code = "SNNC-E271"


class TorchFunctionError(OnnxWriteError):
    """A PyTorch module calls a custom autograd function over whole sequences, whose gradient snnc cannot reproduce."""

    code = "SNNC-E276"


class TorchTrainingError(OnnxWriteError):
    """A dropout or batch normalisation of a PyTorch module has no counterpart in snnc, so it cannot be imported for training."""

    code = "SNNC-E277"
