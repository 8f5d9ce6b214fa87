"""The graph that every frontend produces and every pass reads: one time step of a synchronous dataflow program.

Nodes contain operations (:data:`Operation`); edges lead from the output port of a node to the input port of a node.

A value that crosses an edge of delay d is read d steps later; with delay 0, in the same step. Before step d the edge reads an initial
value: the one that the caller gives for the port (:attr:`Graph.state_inputs`), otherwise the initial state if the port is a state, and 0 if
it is not. Edges into one port of a Population or of Add are summed.
Shapes are those of one sample at one step: they include neither batch nor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import networkx as nx
import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import DuplicateNodeError, InvalidValueError, UnknownNodeError
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
Kind: TypeAlias = Literal["spikes", "values"]
Readout: TypeAlias = Literal["all", "last", "sum", "mean", "max", "min"]
PoolKind: TypeAlias = Literal["average", "sum", "max"]
Idle: TypeAlias = Literal["ignored", "zeros"]
ReduceKind: TypeAlias = Literal["sum", "mean", "max"]


@dataclass(frozen=True)
class FileLayout:
    """Positions of the time and batch axes in the arrays of a file (None: the array has no such axis)."""

    time_axis: int | None = 0
    batch_axis: int | None = 1


@dataclass(frozen=True)
class Input:
    """External values, one array of `shape` per step; without a time axis, the same array at every step."""

    shape: Shape
    kind: Kind = "values"
    layout: FileLayout = FileLayout()


@dataclass(frozen=True, eq=False)
class Linear:
    """``y = weight @ x + bias``; weight [outputs, inputs] as in PyTorch, bias [outputs] or None."""

    weight: Array
    bias: Array | None = None
    learnable: bool = True


@dataclass(frozen=True, eq=False)
class Sparse:
    """``y = W @ x + bias``, where W of `shape` stores only some entries; training changes these, and the others stay 0."""

    weight: Array  # values of the entries [n], row by row
    indices: Array  # column of each entry [n], int32, ascending within a row
    indptr: Array  # [outputs + 1], int32: entries ``indptr[k]`` to ``indptr[k + 1]`` belong to row k, as in :class:`scipy.sparse.csr_array`
    shape: tuple[int, int]  # (outputs, inputs)
    bias: Array | None = None  # [outputs] or None
    learnable: bool = True  # whether training changes weight and bias


@dataclass(frozen=True, eq=False)
class Conv:
    """Cross-correlation over one or two dimensions as in PyTorch; its input has shape (channels, *spatial)."""

    weight: Array  # [out, in / groups, *kernel]
    bias: Array | None = None  # [out] or None
    stride: tuple[int, ...] = ()  # one number per dimension; () means 1 in every dimension
    padding: tuple[tuple[int, int], ...] = ()  # (before, after) zeros per dimension; () means none
    dilation: tuple[int, ...] = ()  # one number per dimension; () means 1 in every dimension
    groups: int = 1  # number of independent groups of channels
    learnable: bool = True  # whether training changes weight and bias


@dataclass(frozen=True)
class Pool:
    """Average, sum or maximum over windows, channel by channel, as in PyTorch; its input has shape (channels, *spatial)."""

    kind: PoolKind  # the reduction of a window. Padding is 0 for "average" and "sum", and never a maximum.
    kernel: tuple[int, ...]  # size of a window, one number per dimension
    stride: tuple[int, ...] = ()  # distance between windows, one number per dimension; () means the kernel size
    # As in :class:`Conv`.
    padding: tuple[tuple[int, int], ...] = ()
    dilation: tuple[int, ...] = ()
    ceil: bool = False  # whether a last window may extend beyond the padded input
    count_padding: bool = True  # whether an average counts taps in the padding as well (torch's ``count_include_pad``)


@dataclass(frozen=True, eq=False)
class Scale:
    """``y = weight * x + bias``, elementwise.

    Weight and bias each have the shape of x, are scalars, or broadcast to it as in NumPy, such as (channels, 1, 1).
    """

    weight: Array
    bias: Array | None = None
    learnable: bool = False


@dataclass(frozen=True, eq=False)
class OneToOne:
    """``y = weight * x``, elementwise; weight of x's shape, a scalar, or None for 1."""

    weight: Array | None = None
    learnable: bool = False


@dataclass(frozen=True)
class Add:
    """Elementwise sum of all incoming edges."""


@dataclass(frozen=True)
class Concat:
    """Values concatenated along `axis`; target ports are "0", "1", … in that order."""

    axis: int = 0


@dataclass(frozen=True)
class Flatten:
    """The input values as a vector."""


@dataclass(frozen=True)
class Reshape:
    """The input values in a different shape."""

    shape: Shape


@dataclass(frozen=True)
class Reduce:
    """Sum, mean or maximum over `axes` of one sample; the first of equal maxima gets the gradient, as in global max pooling."""

    kind: ReduceKind
    axes: tuple[int, ...]
    keepdims: bool = False


@dataclass(frozen=True)
class Slice:
    """The values ``start <= i < stop`` along `axis`."""

    axis: int
    start: int
    stop: int


@dataclass(frozen=True)
class Pad:
    """Zeros around the values: `padding` is (before, after) for each axis of a sample."""

    padding: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Population:
    """Neurons with the same model."""

    model: NeuronModel  # equations of the neurons; inputs of the model are target ports, and its outputs are source ports of edges
    shape: Shape  # shape of the neurons, for one sample
    parameters: Mapping[str, Array] = field(default_factory=dict)
    """Values of the model's parameters that differ from its defaults: scalars (0-d) or arrays of `shape`."""
    learnable: frozenset[str] = frozenset()  # parameters that training changes
    initial: Mapping[str, Array] = field(default_factory=dict)
    """Initial states that differ from those of the model: scalars (0-d) or arrays of `shape`."""
    surrogate: Surrogate | None = None  # derivative of ``spike``; None: as in the compile option

    def before(self, port: str) -> Array:
        """Return the value of `port` before the first step, 0-d or of `shape`: a state's initial value, 0 for any other port."""
        return np.asarray(self.initial.get(port, self.model.states.get(port, 0.0)))


@dataclass(frozen=True)
class Output:
    """A named result: the values of all steps, or a reduction of them over time."""

    readout: Readout = "all"  # the reduction of the values of the steps
    layout: FileLayout = FileLayout()  # positions of time and batch in the result
    # Only the steps ``start <= t < stop`` are used; None means the end of the sequence.
    start: int = 0
    stop: int | None = None


Operation: TypeAlias = (
    Input | Linear | Sparse | Conv | Pool | Scale | OneToOne | Add | Concat | Flatten | Reshape | Reduce | Slice | Pad | Population | Output
)

Weighted: TypeAlias = Linear | Sparse | Conv | Scale | OneToOne
"""Operations that have a `weight` that training may change."""
WEIGHTED: Final = get_args(Weighted)


@dataclass(frozen=True)
class Edge:
    """Edge from a source port to a target port; :meth:`Graph.connect` replaces empty names of ports."""

    source: str
    target: str
    source_port: str = ""
    target_port: str = ""
    delay: int = 0


@dataclass(frozen=True)
class StateRef:
    """A state of a population, or the value of an output port before step 0, which delayed edges read."""

    node: str
    name: str


class Graph:
    """A NetworkX multi-digraph of operations.

    Build it with :meth:`add` and :meth:`connect`, then :func:`snnc.compiler.ir.verify.verify` it.

    Attributes
    ----------
    name
        Name of the network in reports.
    steps
        Number of time steps if the model fixes it, else None.
    state_inputs
        Names with which a caller may set initial states (the explicit states of a single-step file).
    idle_inputs
        Inputs of the file that the network does not need: values for them are "ignored", or must be "zeros".
    assumptions
        Assumptions made by the frontend, as sentences.
    """

    def __init__(self, name: str = "network", steps: int | None = None) -> None:
        self.name = name
        self.steps = steps
        self.state_inputs: dict[str, StateRef] = {}
        self.idle_inputs: dict[str, Idle] = {}
        self.assumptions: list[str] = []
        self.nx: nx.MultiDiGraph[str] = nx.MultiDiGraph()

    def add(self, name: str, operation: Operation) -> str:
        """Add a node and return its name.

        Raises
        ------
        DuplicateNodeError
            The name is taken.
        """
        if name in self.nx:
            raise DuplicateNodeError(f"two nodes are called {name!r}; names must be distinct.")
        self.nx.add_node(name, operation=operation)
        return name

    def connect(self, source: str, target: str, *, source_port: str = "", target_port: str = "", delay: int = 0) -> None:
        """Add an edge.

        Raises
        ------
        UnknownNodeError
            An end or its port does not exist.
        InvalidValueError
            The delay is negative.
        """
        for node in (source, target):
            if node not in self.nx:
                raise UnknownNodeError(f"the connection {source!r} -> {target!r} refers to {node!r}, which is not in the network.")
        if delay < 0:
            raise InvalidValueError(f"the connection {source!r} -> {target!r} has delay {delay}; a delay must be 0 or more steps.")
        edge = Edge(source, target, self._source_port(source, source_port), self._target_port(target, target_port), delay)
        self.nx.add_edge(source, target, edge=edge)

    def operation(self, name: str) -> Operation:
        """Return the operation of node `name`."""
        operation: Operation = self.nx.nodes[name]["operation"]
        return operation

    @property
    def names(self) -> tuple[str, ...]:
        """All node names, in the order of insertion."""
        return tuple(self.nx.nodes)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All edges, in the order of insertion of their sources."""
        return tuple(data["edge"] for _, _, data in self.nx.edges(data=True))

    def incoming(self, name: str, port: str | None = None) -> tuple[Edge, ...]:
        """Return the edges into node `name`, or into one of its ports."""
        edges = (data["edge"] for _, _, data in self.nx.in_edges(name, data=True))
        return tuple(e for e in edges if port is None or e.target_port == port)

    def outgoing(self, name: str) -> tuple[Edge, ...]:
        """Return the edges out of node `name`."""
        return tuple(data["edge"] for _, _, data in self.nx.out_edges(name, data=True))

    def of_type(self, *kinds: type) -> Iterator[tuple[str, Any]]:
        """Yield the pairs (name, operation) of the nodes whose operation is one of `kinds`."""
        for name in self.nx:
            if isinstance(self.operation(name), kinds):
                yield name, self.operation(name)

    def copy(self) -> Graph:
        """Return a new graph that shares the (immutable) operations."""
        other = Graph(self.name, self.steps)
        other.state_inputs, other.idle_inputs = dict(self.state_inputs), dict(self.idle_inputs)
        other.assumptions = list(self.assumptions)
        other.nx = self.nx.copy()
        return other

    def __repr__(self) -> str:
        from snnc.compiler.ir.graph_text import graph_text

        return graph_text(self)

    def _repr_html_(self) -> str:
        from snnc.compiler.ir.graph_text import graph_html

        return graph_html(self)

    def _source_port(self, name: str, port: str) -> str:
        operation = self.operation(name)
        if isinstance(operation, Output):
            raise UnknownNodeError(f"{name!r} is an output of the network; an output has no target.")
        ports = source_ports(operation)
        if port and port not in ports:
            raise UnknownNodeError(f"{name!r} has no output port {port!r}; it has {', '.join(ports)}.")
        return port or ports[0]

    def _target_port(self, name: str, port: str) -> str:
        """Return the input port of a node: `port`, or the first one if it is empty (for a Concat, the next free one)."""
        operation = self.operation(name)
        if isinstance(operation, Input):
            raise UnknownNodeError(f"{name!r} is an input of the network; an input has no source.")
        if isinstance(operation, Concat):
            return port or str(len(self.incoming(name)))
        ports = operation.model.inputs if isinstance(operation, Population) else ("in",)
        if port and port not in ports:
            raise UnknownNodeError(f"{name!r} has no input port {port!r}; it has {', '.join(ports)}.")
        return port or ports[0]


def source_ports(operation: Operation) -> tuple[str, ...]:
    """Return the output ports of `operation`; a population's declared outputs first, then its states and other assigned names."""
    if not isinstance(operation, Population):
        return ("out",)
    model = operation.model
    return tuple(dict.fromkeys([*model.outputs, *model.states, *(a.target for a in model.equations)]))
