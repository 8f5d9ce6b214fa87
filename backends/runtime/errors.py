"""Errors of sessions: their data, training and weight files."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class SessionError(SnncError, code="SNNC-E501"):
    """Any error in running or training a session."""


class UnknownNameError(SessionError, code="SNNC-E502"):
    """A name is not an input, output, state or parameter of the network, or one is missing."""


class DataShapeError(SessionError, code="SNNC-E503"):
    """An array has the wrong shape."""


class DataTypeError(SessionError, code="SNNC-E504"):
    """An array contains something other than real numbers, or targets that the loss or a metric cannot use."""


class DataNotFiniteError(SessionError, code="SNNC-E505"):
    """An array contains NaN or infinite values."""


class LabelRangeError(SessionError, code="SNNC-E506"):
    """A label is not one of the classes, or a sequence length is out of range."""


class NotBinaryError(SessionError, code="SNNC-E507"):
    """An array of spikes contains values other than 0 and 1."""


class StepsError(SessionError, code="SNNC-E508"):
    """The number of time steps is unknown or below 1, or differs between inputs or from the one that the network was compiled for."""


class BatchSizeError(SessionError, code="SNNC-E509"):
    """A batch has a different size than the network was compiled for or than other inputs have, or there are too few samples to fill it."""


class NotTrainableError(SessionError, code="SNNC-E510"):
    """The network was compiled without a loss or without an optimiser."""


class NoStepwiseError(SessionError, code="SNNC-E511"):
    """A single step cannot run: the backend runs whole sequences only, the sequence has ended, or dropped spikes are chosen at random."""


class ClosedError(SessionError, code="SNNC-E512"):
    """The session is closed."""


class WeightsError(SessionError, code="SNNC-E513"):
    """A set of weights lacks some of the network's parameters, or contains others."""


class WeightShapeError(SessionError, code="SNNC-E514"):
    """A weight has a different shape than the network's parameter."""


class WeightNotFiniteError(SessionError, code="SNNC-E515"):
    """A weight is NaN or infinite."""


class WeightFileError(SessionError, code="SNNC-E516"):
    """A file of weights is missing, damaged or of a different format, or cannot be written."""


class MemoryNeededError(SessionError, code="SNNC-E517"):
    """A sequence needs more memory than the machine has, or than it is allowed to use."""


class AmbiguousOutputError(SessionError, code="SNNC-E518"):
    """A prediction needs one output, but the network has several."""


class TrainingOptionError(SessionError, code="SNNC-E519"):
    """A training option, such as the number of epochs or the learning rate, is out of range, has no effect, or contradicts another."""


class GradientWindowError(SessionError, code="SNNC-E596"):
    """A gradient window of a session is empty or outside the compiled one, or the program was compiled without one."""


class SpikeLimitError(SessionError, code="SNNC-E597"):
    """A spike capacity is out of range, or the target does not support it or the policy for dropping spikes."""


class EventsError(SessionError, code="SNNC-E533"):
    """Events are not rows of distinct, ascending ids of existing neurons."""


class TorchTensorError(SessionError, code="SNNC-E534"):
    """A compiled module cannot accept a tensor: its device or type is wrong, or it requires a gradient that was not compiled."""


class OptimizerValuesError(SessionError, code="SNNC-E546"):
    """An optimiser's state belongs to a different network or optimiser, is damaged, or is missing."""


class UnsharedTargetError(SessionError, code="SNNC-E547"):
    """Several processes were started to train together, but the target or the data do not support it."""


class ShareError(SessionError, code="SNNC-E548"):
    """A batch contains fewer samples than there are processes."""


class RanksDifferError(SessionError, code="SNNC-E549"):
    """Processes that train together were given different networks, settings or samples, or hold different parameters."""


class DivergedError(SessionError, code="SNNC-E535"):
    """A loss or parameter became NaN or infinite during training; the weights were reset to the last finite ones."""


class UnfinishedTrainingError(SessionError, code="SNNC-E536"):
    """The training of a project was stopped, and no option says whether to resume it or to start again."""


class ResumeError(SessionError, code="SNNC-E537"):
    """A training run cannot be resumed: it was run with other settings or data, or its checkpoint does not say how far it had got."""


class CheckpointError(SessionError, code="SNNC-E538"):
    """A checkpoint of a training run cannot be written."""


class CheckpointIntervalError(SessionError, code="SNNC-E539"):
    """The interval between two checkpoints is not a duration."""


class BatchesError(SessionError, code="SNNC-E570"):
    """A data set or an iterable of batches is empty, can be iterated only once, or yields something other than the expected batches."""


class LabelsMissingError(SessionError, code="SNNC-E571"):
    """Samples have no labels, or labels were given for batches that contain their own."""


class RanksGroupError(SessionError, code="SNNC-E551"):
    """Processes that train together cannot reach each other, or have no way to exchange arrays in their memory."""


class NormalisationError(SessionError, code="SNNC-E586"):
    """A network with batch normalisation cannot be trained in this way, or on this target."""
