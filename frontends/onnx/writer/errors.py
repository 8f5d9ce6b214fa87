"""Errors of writing ONNX files, of running them in ONNX Runtime, and of importing PyTorch modules (which PyTorch exports to ONNX)."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class OnnxWriteError(SnncError, code="SNNC-E230"):
    """Any error in writing an ONNX file."""


class OnnxFileError(OnnxWriteError, code="SNNC-E231"):
    """The ONNX file cannot be written to this path."""


class OpenTimeError(OnnxWriteError, code="SNNC-E232"):
    """No input has a time axis and the network does not fix its number of steps, so the length of the loop is unknown."""


class NameClashError(OnnxWriteError, code="SNNC-E233"):
    """Two inputs, outputs or states of the network have the same name, but ONNX has a single name space."""


class NoOnnxFormError(OnnxWriteError, code="SNNC-E234"):
    """ONNX has no operators for an operation of the network."""


class CheckerError(OnnxWriteError, code="SNNC-E235"):
    """ONNX's checker refuses the written model, which is a fault in snnc."""


class WeightsTooLargeError(OnnxWriteError, code="SNNC-E236"):
    """The network without its weights, or one of its arrays, exceeds the size limit of an ONNX file."""


class RuntimeRefusesError(OnnxWriteError, code="SNNC-E237"):
    """ONNX Runtime cannot load the file, or fails on the given arrays."""


class RuntimeInputError(OnnxWriteError, code="SNNC-E238"):
    """An array for ONNX Runtime is missing, unknown or of the wrong shape."""


class FixedSizeError(OnnxWriteError, code="SNNC-E239"):
    """The requested number of samples or steps differs from the one fixed by the model file."""


class HiddenTooLargeError(OnnxWriteError, code="SNNC-E244"):
    """Comparing all layers at all steps needs more memory than snnc allows."""


class TorchExportError(OnnxWriteError, code="SNNC-E240"):
    """The PyTorch module does not run on the example, or PyTorch cannot export it."""


class TorchModuleError(OnnxWriteError, code="SNNC-E241"):
    """An argument is not a PyTorch module or contains no weights of snnc, or the sample data lack an input of the module."""


class UnmatchedWeightError(OnnxWriteError, code="SNNC-E242"):
    """A trained weight belongs to no parameter of the PyTorch module, or its parameter cannot store it."""


class AmbiguousWeightError(OnnxWriteError, code="SNNC-E243"):
    """A trained weight could belong to several parameters of the PyTorch module, or different weights belong to the same parameter."""


class HiddenStateExampleError(OnnxWriteError, code="SNNC-E248"):
    """A single-step PyTorch module stores its states internally, but the example is not a sequence."""


class StateLostError(OnnxWriteError, code="SNNC-E249"):
    """A single-step PyTorch module neither stores its neurons' states nor accepts and returns them."""


class UnknownFormError(OnnxWriteError, code="SNNC-E261"):
    """The requested form of an ONNX file is unknown."""


class TorchHookError(OnnxWriteError, code="SNNC-E271"):
    """A hook of a PyTorch module changes a gradient in a way that snnc cannot reproduce."""


class TorchFunctionError(OnnxWriteError, code="SNNC-E276"):
    """A PyTorch module calls a custom autograd function over whole sequences, whose gradient snnc cannot reproduce."""


class TorchTrainingError(OnnxWriteError, code="SNNC-E277"):
    """A dropout or batch normalisation of a PyTorch module has no counterpart in snnc, so it cannot be imported for training."""
