"""Errors that a user can cause and fix: each message says what is wrong, where, the numbers and the remedy.

Every check has its own class with a stable ``code``. Classes of one level are defined next to that level
(``snnc.frontends.onnx.errors`` and so on); all derive from :class:`SnncError`. The first digit of a code is the level:
0 graph, 1 neuron equations, 2 ONNX files, 3 mapping, 4 building and running, 5 command line and data, 6 training, 7 NIR files.
"""

from __future__ import annotations

from typing import Any, ClassVar


class SnncError(Exception):
    """Base of all errors that a user can cause and fix; the command line prints it and exits with ``exit_code``."""

    code: ClassVar[str] = "SNNC-E000"
    exit_code: ClassVar[int] = 2

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"

    @property
    def text(self) -> str:
        """The message without its code."""
        return super().__str__()

    @property
    def data(self) -> dict[str, Any]:
        """Numbers of the message, as JSON types."""
        return {}


class ToolMissingError(SnncError):
    """A tool that snnc needs on this machine (a C++ compiler, the Poplar SDK) is missing."""

    code = "SNNC-E400"
    exit_code = 3


class BuildError(SnncError):
    """The C++ compiler rejected an emitted project."""

    code = "SNNC-E401"


class GraphError(SnncError):
    """Base of the errors of :mod:`snnc.compiler.ir.graph`."""

    code = "SNNC-E001"


class UnknownNodeError(GraphError):
    """An edge or a caller names a node or port that is not in the graph."""

    code = "SNNC-E002"


class DuplicateNodeError(GraphError):
    """Two nodes have the same name."""

    code = "SNNC-E003"


class ShapeMismatchError(GraphError):
    """The shapes of two ends of a connection differ."""

    code = "SNNC-E004"


class CycleWithoutDelayError(GraphError):
    """A cycle of the graph has no delay, so no order of evaluation exists."""

    code = "SNNC-E005"


class NotFiniteError(GraphError):
    """A weight, parameter or initial state is NaN or infinite."""

    code = "SNNC-E006"


class UnconnectedError(GraphError):
    """An operation or a port has no input, or the graph has no input or output."""

    code = "SNNC-E007"


class InvalidValueError(GraphError):
    """A size, delay, capacity or option is outside its range."""

    code = "SNNC-E008"


class EmptyShapeError(GraphError):
    """A shape has a size below 1."""

    code = "SNNC-E009"


class TooLargeError(GraphError):
    """An array would contain more elements than can be addressed."""

    code = "SNNC-E010"


class ParameterShapeError(GraphError):
    """A weight, parameter or initial state has the wrong shape, or a name that the model does not have."""

    code = "SNNC-E011"


class SeveralSourcesError(GraphError):
    """Several edges lead to a port that can read only one."""

    code = "SNNC-E012"


class NothingToLearnError(GraphError):
    """A loss is given, but no learnable parameter affects it."""

    code = "SNNC-E013"


class EmptyGroupError(GraphError):
    """A group of the optimiser matches no parameter."""

    code = "SNNC-E090"


class LossOutputError(GraphError):
    """No output fits the loss, or more than one does."""

    code = "SNNC-E014"


class StateInputError(GraphError):
    """An explicit state is neither a state nor an output port of a population."""

    code = "SNNC-E015"


class UnknownLossError(GraphError):
    """The loss is unknown, or its numbers are wrong."""

    code = "SNNC-E016"


class UnknownPassError(GraphError):
    """No pass of the flow has this name."""

    code = "SNNC-E017"


class ConcatAxisError(GraphError):
    """The axis of a concatenation does not exist in its inputs, or the parts along it are not contiguous."""

    code = "SNNC-E018"


class WindowError(GraphError):
    """The kernel, stride, padding or dilation of a convolution or pooling is out of range or does not fit the input."""

    code = "SNNC-E020"


class ChannelError(GraphError):
    """The channels of a convolution's input, its groups and its weight do not fit together."""

    code = "SNNC-E021"


class AxisError(GraphError):
    """A reduction or a slice names an axis that its input does not have, or a range outside it."""

    code = "SNNC-E022"


class ReshapeError(GraphError):
    """A reshape would change the number of values."""

    code = "SNNC-E023"


class StatisticsCycleError(GraphError):
    """A batch normalisation is on a recurrent path, so statistics over all steps would depend on themselves."""

    code = "SNNC-E031"


class PadError(GraphError):
    """A padding does not have exactly one pair (before, after) of 0 or more for each axis of its input."""

    code = "SNNC-E025"


class SparsePatternError(GraphError):
    """The positions of a sparse weight's entries are not a CSR pattern: out of range, out of order, duplicate, or of the wrong number."""

    code = "SNNC-E026"


class EquationError(SnncError):
    """The text of a neuron's equations is not in snnc's equation language."""

    code = "SNNC-E101"


class NeuronDefinitionError(SnncError):
    """A neuron model's states, inputs, parameters and equations do not fit together."""

    code = "SNNC-E102"


class UnknownSurrogateError(SnncError):
    """The library has no surrogate derivative of this name."""

    code = "SNNC-E103"


class SurrogateValueError(SnncError):
    """A surrogate derivative has too many numbers, or numbers that are unreadable or out of range."""

    code = "SNNC-E104"


class GraphDataError(SnncError):
    """The description of a network, in a project folder or in a model file's metadata, is damaged or has a different format."""

    code = "SNNC-E027"


class CacheFolderError(SnncError):
    """The folder for snnc's builds cannot be written, or no home folder exists for it."""

    code = "SNNC-E028"


class HalfRangeError(SnncError):
    """A weight to be stored as float16 exceeds the range of float16."""

    code = "SNNC-E029"


class NothingRoundedError(SnncError):
    """Numbers of a program should be stored as float16, but none of them may be rounded."""

    code = "SNNC-E030"


class HalfNumbersError(SnncError):
    """The numbers to store as float16 cannot be read, or contradict other options."""

    code = "SNNC-E620"


class HalfLayersError(SnncError):
    """A choice of float16 numbers by layer names a layer twice or one that does not exist, or rounds weights in two ways."""

    code = "SNNC-E640"


class HalfTargetError(SnncError):
    """A target, or a kind of program, cannot store these numbers as float16."""

    code = "SNNC-E621"


class HalfDeltasError(SnncError):
    """Samples cannot be divided into pairs, as float16 deltas require."""

    code = "SNNC-E622"


class TemporaryFolderError(SnncError):
    """No folder for temporary files can be written."""

    code = "SNNC-E434"


class UnsafeCacheError(SnncError):
    """Another user could write to the folder of snnc's builds, which snnc executes."""

    code = "SNNC-E440"


class PlanFileError(SnncError):
    """A file is not a plan of this version of snnc."""

    code = "SNNC-E314"


class StepsNeededError(SnncError):
    """Neither the model nor the options give the number of time steps of a sequence."""

    code = "SNNC-E530"
