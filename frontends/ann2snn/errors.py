"""Errors of the conversion of ReLU networks, one class per check."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class Ann2SnnError(SnncError, code="SNNC-E250"):
    """Any error in the conversion of a ReLU network."""


class NoSpikingFormError(Ann2SnnError, code="SNNC-E251"):
    """A layer of the network has no counterpart among integrate-and-fire neurons and linear connections."""


class AlreadySpikingError(Ann2SnnError, code="SNNC-E252"):
    """The model to be converted is already a spiking network."""


class CalibrationMissingError(Ann2SnnError, code="SNNC-E253"):
    """The sample data for balancing thresholds are missing, or lack an input."""


class CalibrationShapeError(Ann2SnnError, code="SNNC-E254"):
    """Sample data differ in shape from the network's input, or in number of samples from each other."""


class CalibrationValueError(Ann2SnnError, code="SNNC-E255"):
    """Sample data contain NaN or infinity, or are not real numbers."""


class SilentLayerError(Ann2SnnError, code="SNNC-E256"):
    """A ReLU layer is zero on all sample data, so its threshold cannot be balanced."""


class LabelError(Ann2SnnError, code="SNNC-E257"):
    """Labels of the sample data are not class indices of the network's output, one per sample."""


class ConversionOptionError(Ann2SnnError, code="SNNC-E258"):
    """The percentile or the number of steps of a conversion is out of range."""


class BatchAxisError(Ann2SnnError, code="SNNC-E259"):
    """The samples are not on the first axis of every value, or another axis of an input has no fixed size."""
