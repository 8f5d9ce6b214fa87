"""Errors that a user can cause and fix: each message says what is wrong, where, the numbers and the remedy.

Every check has its own class with a stable ``code``, given in the class statement. Classes of one level are defined next to that level
(``snnc.frontends.onnx.errors`` and so on); all derive from :class:`SnncError`. The first digit of a code is, with a few
exceptions, the level: 0 graph, 1 neurons and networks in Python, 2 ONNX files, PyTorch modules and ReLU networks, 3 mapping, 4 building and
running, 5 sessions, data and the command line, 6 options of training, 7 NIR files.
"""

from __future__ import annotations

from typing import Any, ClassVar


class SnncError(Exception):
    """Base of all errors with a code; the command line prints the error and exits with ``exit_code``."""

    code: ClassVar[str] = "SNNC-E000"
    exit_code: ClassVar[int] = 2

    def __init_subclass__(cls, code: str | None = None) -> None:
        """Set the code of a subclass: ``class NotFiniteError(SnncError, code="SNNC-E006")``."""
        super().__init_subclass__()
        if code is not None:
            cls.code = code

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"

    @property
    def text(self) -> str:
        """The message without its code."""
        return super().__str__()

    @property
    def data(self) -> dict[str, Any]:
        """Numbers of the message, as JSON types; empty unless a subclass has some."""
        return {}


class ToolMissingError(SnncError, code="SNNC-E400"):
    """A program or package that snnc needs is missing on this machine, such as a C++ compiler, the Poplar SDK or PyTorch."""

    exit_code = 3


class BuildError(SnncError, code="SNNC-E401"):
    """The C++ compiler rejected an emitted project."""


class GraphError(SnncError, code="SNNC-E001"):
    """Any error in a network (its nodes, connections, shapes, values or loss)."""


class UnknownNodeError(GraphError, code="SNNC-E002"):
    """An edge or a caller names a node or port that is not in the graph."""


class DuplicateNodeError(GraphError, code="SNNC-E003"):
    """Two nodes have the same name."""


class ShapeMismatchError(GraphError, code="SNNC-E004"):
    """The shapes of two ends of a connection differ."""


class CycleWithoutDelayError(GraphError, code="SNNC-E005"):
    """A cycle of the graph has no delay, so no order of evaluation exists."""


class NotFiniteError(GraphError, code="SNNC-E006"):
    """A weight, parameter or initial state is NaN or infinite."""


class UnconnectedError(GraphError, code="SNNC-E007"):
    """A port has no source, an operation has no target, or the graph has no input or output."""


class InvalidValueError(GraphError, code="SNNC-E008"):
    """A size, delay, capacity or option has a value that is not allowed."""


class EmptyShapeError(GraphError, code="SNNC-E009"):
    """A shape has a size below 1."""


class TooLargeError(GraphError, code="SNNC-E010"):
    """An array would contain more elements than can be addressed, or would not fit in the memory of this machine."""


class ParameterShapeError(GraphError, code="SNNC-E011"):
    """A weight, parameter or initial state has the wrong shape, or a name that the model does not have."""


class SeveralSourcesError(GraphError, code="SNNC-E012"):
    """Several edges lead to a port that can read only one."""


class NothingToLearnError(GraphError, code="SNNC-E013"):
    """A loss is given, but no learnable parameter affects it."""


class EmptyGroupError(GraphError, code="SNNC-E090"):
    """A group of the optimiser matches no parameter."""


class LossOutputError(GraphError, code="SNNC-E014"):
    """The loss cannot read the chosen output, or it is not clear which output it reads."""


class StateInputError(GraphError, code="SNNC-E015"):
    """A state that callers may set refers to a node that is not a population, or to neither a state nor an output port of it."""


class UnknownLossError(GraphError, code="SNNC-E016"):
    """The loss or one of its terms is unknown, or its options or numbers are invalid."""


class UnknownPassError(GraphError, code="SNNC-E017"):
    """No pass has the name that `--dump-after` gives."""


class ConcatAxisError(GraphError, code="SNNC-E018"):
    """The axis of a concatenation does not exist in its inputs, or the parts along it are not contiguous."""


class WindowError(GraphError, code="SNNC-E020"):
    """The kernel, stride, padding or dilation of a convolution or pooling is out of range or does not fit the input."""


class ChannelError(GraphError, code="SNNC-E021"):
    """The channels of a convolution's input, its groups and its weight do not fit together."""


class AxisError(GraphError, code="SNNC-E022"):
    """A reduction or a slice names an axis that its input does not have, or a range outside it."""


class ReshapeError(GraphError, code="SNNC-E023"):
    """A reshape would change the number of values."""


class StatisticsCycleError(GraphError, code="SNNC-E031"):
    """A batch normalisation is on a recurrent path, so statistics over all steps would depend on themselves."""


class PadError(GraphError, code="SNNC-E025"):
    """A padding does not have exactly one pair (before, after) of 0 or more for each axis of its input."""


class SparsePatternError(GraphError, code="SNNC-E026"):
    """The positions of a sparse weight's entries are not a CSR pattern: out of range, out of order, duplicate, or of the wrong number."""


class EquationError(SnncError, code="SNNC-E101"):
    """The text of a neuron's equations is not in snnc's equation language."""


class NeuronDefinitionError(SnncError, code="SNNC-E102"):
    """A neuron model's states, inputs, parameters and equations do not fit together."""


class UnknownSurrogateError(SnncError, code="SNNC-E103"):
    """The library has no surrogate derivative of this name."""


class SurrogateValueError(SnncError, code="SNNC-E104"):
    """A surrogate derivative has too many numbers, or numbers that are unreadable or out of range."""


class GraphDataError(SnncError, code="SNNC-E027"):
    """The description of a network, in a project folder or in a model file's metadata, is damaged or has a different format."""


class CacheFolderError(SnncError, code="SNNC-E028"):
    """The folder for snnc's builds cannot be written, or no home folder exists for it."""


class HalfRangeError(SnncError, code="SNNC-E029"):
    """A weight to be stored as float16 exceeds the range of float16."""


class NothingRoundedError(SnncError, code="SNNC-E030"):
    """The option `half` or `precision` selects numbers that the program or a named layer does not have, or that may not be rounded."""


class HalfNumbersError(SnncError, code="SNNC-E620"):
    """The option `half`, which selects what is stored as float16, is invalid or contradicts other options."""


class HalfLayersError(SnncError, code="SNNC-E640"):
    """The option `half` names a layer twice or one that does not exist, or gives two layers different roundings of weights."""


class HalfTargetError(SnncError, code="SNNC-E621"):
    """A target, or a kind of program, cannot store these numbers as float16."""


class HalfDeltasError(SnncError, code="SNNC-E622"):
    """Samples cannot be divided into pairs, as float16 deltas require."""


class TemporaryFolderError(SnncError, code="SNNC-E434"):
    """No folder for temporary files can be written."""


class UnsafeCacheError(SnncError, code="SNNC-E440"):
    """Another user could write to the folder of snnc's builds, which snnc executes."""


class PlanFileError(SnncError, code="SNNC-E314"):
    """A file is not a plan of this version of snnc."""


class StepsNeededError(SnncError, code="SNNC-E530"):
    """Neither the model nor the options give the number of time steps of a sequence."""
