"""Errors of the conversion of ReLU networks, one class per check."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class Ann2SnnError(SnncError):
    """Base of the errors of :mod:`snnc.frontends.ann2snn`."""

    code = "SNNC-E250"


class NoSpikingFormError(Ann2SnnError):
    """A layer of the network has no counterpart among integrate-and-fire neurons and linear connections."""

    code = "SNNC-E251"


class AlreadySpikingError(Ann2SnnError):
    """The model to be converted is already a spiking network."""

    code = "SNNC-E252"


class CalibrationMissingError(Ann2SnnError):
    """The sample data for balancing thresholds are missing, or lack an input."""

    code = "SNNC-E253"


class CalibrationShapeError(Ann2SnnError):
    """Sample data differ in shape from the network's input, or in number of samples from each other."""

    code = "SNNC-E254"


class CalibrationValueError(Ann2SnnError):
    """Sample data contain NaN or infinity, or are not real numbers."""

    code = "SNNC-E255"


class SilentLayerError(Ann2SnnError):
    """A ReLU layer is zero on all sample data, so its threshold cannot be balanced."""

    code = "SNNC-E256"


class LabelError(Ann2SnnError):
    """Labels of the sample data are not class indices of the network's output, one per sample."""

    code = "SNNC-E257"


class ConversionOptionError(Ann2SnnError):
    """The percentile or the number of steps of a conversion is out of range."""

    code = "SNNC-E258"


class BatchAxisError(Ann2SnnError):
    """The file's first axis is not the sample axis, samples are mixed, or a size other than their number is open."""

    code = "SNNC-E259"
