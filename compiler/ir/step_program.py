"""StepProgram: a network's time step, its adjoint and its update, as operations over named buffers.

Each operation is a line of arithmetic in :mod:`snnc.compiler.ir.step_operations`. One training step, for a batch::

    set states to their initial values; for t = 0 … T-1: run `forward`
    loss(records) -> adjoints of the records, all steps
    for t = T-1 … 0: run `backward`; then run `update`

Canonical ids, by which emitted code names nodes: inputs ``x0``, populations ``p0``, connections ``c0``, outputs ``y0``.
A buffer is called ``<id>_<value>`` (weights: ``c0_w``), its adjoint or gradient ``d_<buffer>``. Names in the model are in the fields
`label`. Only inputs, populations, connections and outputs exist here: Add, Concat, Flatten and Reshape have become connections and
relay populations.

Buffers of values are vectors (one sample at one step). An operation on arrays with several axes has their shapes as fields; the vectors
contain their elements in C order. Buffers of parameters and of their gradients have the shapes of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from snnc.compiler.ir.arrays.channel_order import ChannelOrder
from snnc.compiler.ir.graph import Array, FileLayout, Kind, Readout, Shape, StateRef
from snnc.compiler.ir.step_operations import BackwardOp, BufferValue, ForwardOp, OptimizerStep
from snnc.compiler.losses import Loss
from snnc.compiler.losses.optimizers import Optimizer
from snnc.compiler.losses.weight_rounding import WeightRounding
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

Role: TypeAlias = Literal["parameter", "gradient", "input", "current", "state", "output", "saved", "record", "adjoint"]
Lifetime: TypeAlias = Literal["program", "sequence", "step"]
ConnectionKind: TypeAlias = Literal["dense", "one_to_one", "convolution", "pooling", "scale", "reduction", "slice", "pad", "sparse"]


@dataclass(frozen=True)
class Buffer:
    """A named array.

    `shape` includes neither batch nor time. A buffer of lifetime "program" has exactly this shape; "step" means [B, *shape], valid
    within one step; "sequence" means [T, B, *shape], slot t written at step t ("state" buffers have T + 1 slots: slot 0
    is the initial state, slot t + 1 the state after step t). `order` is the order in which values with channels are stored (None: the
    model's order); only operations with an :class:`~snnc.compiler.ir.arrays.indexed_maps.IndexedMap` use it.
    """

    name: str
    role: Role
    shape: Shape
    lifetime: Lifetime
    kind: Kind = "values"
    order: ChannelOrder | None = None


# ---- nodes named by the ids --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InputInfo:
    """A network input; `layout` is its layout in the model's file; a static input is the same at every step.

    `varies`: the spikes that are sent are chosen at random at every step, so that they differ from step to step.
    """

    id: str
    label: str
    shape: Shape
    kind: Kind
    layout: FileLayout
    varies: bool = field(default=False, metadata={"optional": True})

    @property
    def static(self) -> bool:
        """Whether the input has no time axis."""
        return self.layout.time_axis is None

    @property
    def repeated(self) -> bool:
        """Whether a machine receives the input once, and sends the same values at every step."""
        return self.static and not self.varies


@dataclass(frozen=True, eq=False)
class PopulationInfo:
    """A population: `ports` are the buffers of its currents, `output_buffers` maps used output ports to sequence buffers."""

    id: str
    label: str
    shape: Shape
    model: NeuronModel
    kernel: Kernel
    surrogate: Surrogate
    initial: tuple[Array, ...]
    """Initial states, parallel to ``kernel.states``; scalars (0-d) or of `shape`."""
    ports: tuple[str, ...]
    output_buffers: Mapping[str, str]
    shown: bool = field(default=False, metadata={"optional": True})
    """Whether the adjoint of its current is stored at every step, because a caller reads it."""

    @property
    def before(self) -> dict[str, Array]:
        """Nonzero values that delayed connections read before the first step, by output buffer: initial values of states."""
        states = {self.kernel.labels[s]: value for s, value in zip(self.kernel.states, self.initial, strict=True)}
        return {buffer: states[port] for port, buffer in self.output_buffers.items() if port in states and states[port].any()}


@dataclass(frozen=True, eq=False)
class ConnectionInfo:
    """A connection: its name in the model (`label`), ids of its source and target (``x0``, ``p1``), its buffers, and its parameters."""

    id: str
    label: str
    source: str
    source_buffer: str
    target: str
    port: int
    kind: ConnectionKind
    delay: int
    weight: str | None
    bias: str | None
    event_driven: bool
    """Whether the source spikes, and the kind is dense, sparse or convolution."""


@dataclass(frozen=True, eq=False)
class OutputInfo:
    """A named result: `record` is the sequence buffer of its values."""

    id: str
    label: str
    source: BufferValue
    record: str
    shape: Shape
    readout: Readout
    layout: FileLayout
    window: tuple[int, int | None] = (0, None)
    """Steps that are used: the first one, and the one after the last (None: all later steps)."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """Initial value and properties of a parameter buffer.

    `label` is the name in ``state_dict``: ``"<node>.weight"``, ``"<node>.bias"``, ``"<population>.<parameter>"``.
    """

    name: str
    label: str
    value: Array
    learnable: bool
    half: bool = field(default=False, metadata={"optional": True})
    """Whether the parameter is stored as float16; `value` is then rounded."""


@dataclass(frozen=True, eq=False)
class StepProgram:
    """A complete network, ready to be run, mapped or printed; see the module's docstring."""

    name: str
    buffers: Mapping[str, Buffer]
    forward: tuple[ForwardOp, ...]
    backward: tuple[BackwardOp, ...]
    update: tuple[OptimizerStep, ...]
    inputs: tuple[InputInfo, ...]
    populations: tuple[PopulationInfo, ...]
    """Sorted so that the source of every connection without delay comes before its target."""
    connections: tuple[ConnectionInfo, ...]
    outputs: tuple[OutputInfo, ...]
    parameters: Mapping[str, Parameter]
    loss: Loss | None
    loss_output: str | None
    """Id of the output that the loss reads."""
    optimizer: Optimizer | None
    steps: int | None
    """T, if set by the model or the compile options."""
    state_inputs: Mapping[str, StateRef]
    """Name of a state input -> (population id, canonical state), or (population id, output port) for its value before step 0."""
    assumptions: tuple[str, ...]
    truncate: int | None = None
    """K: no gradient flows from step t to earlier steps if t is a multiple of K; None: through all steps."""
    rounding: WeightRounding | None = field(default=None, metadata={"optional": True})
    """Rounding of updates of `half` parameters; None if no such parameter is updated."""

    def population(self, id_: str) -> PopulationInfo:
        """Return the population with this id, which must exist."""
        return next(p for p in self.populations if p.id == id_)
