"""Errors of sessions: their data, training and weight files."""

from __future__ import annotations

from snnc.compiler.errors import SnncError


class SessionError(SnncError):
    """Base of the errors of :class:`snnc.backends.session.BackendSession`."""

    code = "SNNC-E501"


class UnknownNameError(SessionError):
    """A name is not an input, output, state or parameter of the network, or one is missing."""

    code = "SNNC-E502"


class DataShapeError(SessionError):
    """An array has the wrong shape."""

    code = "SNNC-E503"


class DataTypeError(SessionError):
    """An array contains something other than real numbers, or labels other than integers."""

    code = "SNNC-E504"


class DataNotFiniteError(SessionError):
    """An array contains NaN or infinite values."""

    code = "SNNC-E505"


class LabelRangeError(SessionError):
    """A label is not one of the classes."""

    code = "SNNC-E506"


class NotBinaryError(SessionError):
    """An array of spikes contains values other than 0 and 1."""

    code = "SNNC-E507"


class StepsError(SessionError):
    """The number of time steps is unknown, or differs from the one that the network was compiled for."""

    code = "SNNC-E508"


class BatchSizeError(SessionError):
    """A batch has a different size than the network was compiled for, or there are too few samples to fill one."""

    code = "SNNC-E509"


class NotTrainableError(SessionError):
    """The network was compiled without a loss or without an optimiser."""

    code = "SNNC-E510"


class NoStepwiseError(SessionError):
    """The backend runs whole sequences only."""

    code = "SNNC-E511"


class ClosedError(SessionError):
    """The session is closed."""

    code = "SNNC-E512"


class WeightsError(SessionError):
    """A set of weights lacks some of the network's parameters, or contains others."""

    code = "SNNC-E513"


class WeightShapeError(SessionError):
    """A weight has a different shape than the network's parameter."""

    code = "SNNC-E514"


class WeightNotFiniteError(SessionError):
    """A weight is NaN or infinite."""

    code = "SNNC-E515"


class WeightFileError(SessionError):
    """A file of weights is missing, damaged or of a different format."""

    code = "SNNC-E516"


class MemoryNeededError(SessionError):
    """A sequence needs more memory than the machine has, or than it is allowed to use."""

    code = "SNNC-E517"


class AmbiguousOutputError(SessionError):
    """A prediction needs one output, but the network has several."""

    code = "SNNC-E518"


class TrainingOptionError(SessionError):
    """A training option, such as the number of epochs, the batch size or the learning rate, is out of range."""

    code = "SNNC-E519"


class GradientWindowError(SessionError):
    """A gradient window of a session is empty or outside the compiled one, or the program was compiled without one."""

    code = "SNNC-E596"


class SpikeLimitError(SessionError):
    """A spike capacity is out of range, or the target does not support it or the policy for dropping spikes."""

    code = "SNNC-E597"


class EventsError(SessionError):
    """Events are not rows of distinct, ascending neuron ids."""

    code = "SNNC-E533"


class TorchTensorError(SessionError):
    """A compiled module cannot accept a tensor: its device or type is wrong, or it requires a gradient that was not compiled."""

    code = "SNNC-E534"


class OptimizerValuesError(SessionError):
    """An optimiser's state belongs to a different network or optimiser, is damaged, or is missing."""

    code = "SNNC-E546"


class UnsharedTargetError(SessionError):
    """Several processes were started to train together, but the target cannot sum gradients over processes."""

    code = "SNNC-E547"


class ShareError(SessionError):
    """A batch contains fewer samples than there are processes."""

    code = "SNNC-E548"


class RanksDifferError(SessionError):
    """Processes that train together were given different networks, settings or samples, or hold different parameters."""

    code = "SNNC-E549"


class DivergedError(SessionError):
    """A loss or parameter became NaN or infinite during training; the weights were reset to the last finite ones."""

    code = "SNNC-E535"


class UnfinishedTrainingError(SessionError):
    """The training of a project was stopped, and no option says whether to resume it or to start again."""

    code = "SNNC-E536"


class ResumeError(SessionError):
    """A training run cannot be resumed: it was run with other settings or data, or the file does not contain its position."""

    code = "SNNC-E537"


class CheckpointError(SessionError):
    """A checkpoint of a training run cannot be written."""

    code = "SNNC-E538"


class CheckpointIntervalError(SessionError):
    """The interval between two checkpoints is not a duration."""

    code = "SNNC-E539"


class BatchesError(SessionError):
    """The iterable of training batches yields no batches, can be iterated only once, or yields items other than pairs (samples, labels)."""

    code = "SNNC-E570"


class LabelsMissingError(SessionError):
    """Samples have no labels, or labels were given for batches that contain their own."""

    code = "SNNC-E571"


class RanksGroupError(SessionError):
    """Processes that train together cannot reach each other, or have no way to exchange arrays in their memory."""

    code = "SNNC-E551"


class NormalisationError(SessionError):
    """A network with batch normalisation cannot be trained in this way, or on this target."""

    code = "SNNC-E586"
