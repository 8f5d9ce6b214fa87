"""Errors of the ONNX writer, one class per check."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class OnnxWriteError(SnncError):
    """Base of the errors of :mod:`snnc.frontends.onnx.writer`."""

    code = "SNNC-E230"


class OnnxFileError(OnnxWriteError):
    """The ONNX file cannot be written there."""

    code = "SNNC-E231"


class OpenTimeError(OnnxWriteError):
    """No input has a time axis and the network does not fix its number of steps, so the loop has no length."""

    code = "SNNC-E232"


class NameClashError(OnnxWriteError):
    """An input, output or state of the network has the same name as another, and ONNX has a single name space."""

    code = "SNNC-E233"


class NoOnnxFormError(OnnxWriteError):
    """An operation of the network has no counterpart among ONNX's operators."""

    code = "SNNC-E234"


class CheckerError(OnnxWriteError):
    """ONNX's own checker refuses the writer's output: a fault in snnc."""

    code = "SNNC-E235"


class WeightsTooLargeError(OnnxWriteError):
    """The network without its weights, or one of its arrays, exceeds the size limit of an ONNX file."""

    code = "SNNC-E236"


class RuntimeRefusesError(OnnxWriteError):
    """ONNX Runtime does not load the file, or fails on the given arrays."""

    code = "SNNC-E237"


class RuntimeInputError(OnnxWriteError):
    """An array for ONNX Runtime is missing, unknown or does not fit the file's shape."""

    code = "SNNC-E238"


class FixedSizeError(OnnxWriteError):
    """The requested number of samples or steps differs from the one that the model file fixes."""

    code = "SNNC-E239"


class HiddenTooLargeError(OnnxWriteError):
    """Comparing all layers at all steps needs more memory than snnc allows for it."""

    code = "SNNC-E244"


class TorchExportError(OnnxWriteError):
    """PyTorch cannot export the module."""

    code = "SNNC-E240"


class TorchModuleError(OnnxWriteError):
    """The argument is not a PyTorch module, or there are no weights to take."""

    code = "SNNC-E241"


class UnmatchedWeightError(OnnxWriteError):
    """A trained weight does not belong to any parameter of the PyTorch module."""

    code = "SNNC-E242"


class AmbiguousWeightError(OnnxWriteError):
    """A trained weight could belong to several parameters of the PyTorch module."""

    code = "SNNC-E243"


class HiddenStateExampleError(OnnxWriteError):
    """A PyTorch module of one step keeps its states inside, and the example is not a sequence."""

    code = "SNNC-E248"


class StateLostError(OnnxWriteError):
    """A PyTorch module of one step neither keeps the states of its neurons nor takes and returns them."""

    code = "SNNC-E249"


class UnknownFormError(OnnxWriteError):
    """snnc does not write the requested form of an ONNX file."""

    code = "SNNC-E261"


class TorchHookError(OnnxWriteError):
    """A hook of a PyTorch module changes a gradient in a way that snnc does not follow."""

    code = "SNNC-E271"


class TorchFunctionError(OnnxWriteError):
    """A PyTorch module has its own function over whole sequences, whose gradient snnc does not follow."""

    code = "SNNC-E276"


class TorchTrainingError(OnnxWriteError):
    """A dropout or batch normalisation of a PyTorch module has no counterpart in snnc, so the module cannot be imported for training."""

    code = "SNNC-E277"
