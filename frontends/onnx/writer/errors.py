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
    """No input has a time axis and the network does not say its number of steps, so the loop has no length."""

    code = "SNNC-E232"


class NameClashError(OnnxWriteError):
    """An input, output or state of the network has the name of another, and ONNX has one space of names."""

    code = "SNNC-E233"


class NoOnnxFormError(OnnxWriteError):
    """An operation of the network has no counterpart among ONNX's operators."""

    code = "SNNC-E234"


class CheckerError(OnnxWriteError):
    """ONNX's own checker refuses what the writer made: a fault of snnc."""

    code = "SNNC-E235"


class WeightsTooLargeError(OnnxWriteError):
    """The network without its weights, or one of its arrays, exceeds what an ONNX file can hold."""

    code = "SNNC-E236"


class RuntimeRefusesError(OnnxWriteError):
    """ONNX Runtime does not load the file, or fails on the given arrays."""

    code = "SNNC-E237"


class RuntimeInputError(OnnxWriteError):
    """An array for ONNX Runtime is missing, unknown or does not fit the file's shape."""

    code = "SNNC-E238"


class FixedSizeError(OnnxWriteError):
    """A number of samples or steps is asked for that the model file fixes otherwise."""

    code = "SNNC-E239"


class HiddenTooLargeError(OnnxWriteError):
    """Comparing all layers at all steps takes more memory than snnc takes for it."""

    code = "SNNC-E244"


class TorchExportError(OnnxWriteError):
    """PyTorch cannot export the module."""

    code = "SNNC-E240"


class TorchModuleError(OnnxWriteError):
    """What is given is no PyTorch module, or there are no weights to take."""

    code = "SNNC-E241"


class UnmatchedWeightError(OnnxWriteError):
    """A trained weight belongs to no parameter of the PyTorch module."""

    code = "SNNC-E242"


class AmbiguousWeightError(OnnxWriteError):
    """A trained weight could belong to several parameters of the PyTorch module."""

    code = "SNNC-E243"


class HiddenStateExampleError(OnnxWriteError):
    """A PyTorch module of one step keeps its states inside, and the example is no sequence."""

    code = "SNNC-E248"


class StateLostError(OnnxWriteError):
    """A PyTorch module of one step neither keeps the states of its neurons nor takes and returns them."""

    code = "SNNC-E249"


class UnknownFormError(OnnxWriteError):
    """An ONNX file is asked for in a form that snnc does not write."""

    code = "SNNC-E261"


class TorchHookError(OnnxWriteError):
    """A hook of a PyTorch module changes a gradient in a way that snnc does not follow."""

    code = "SNNC-E271"


class TorchFunctionError(OnnxWriteError):
    """A PyTorch module has a function of its own over whole sequences, whose gradient snnc does not follow."""

    code = "SNNC-E276"
