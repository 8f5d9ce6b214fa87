"""StepProgram: a network's time step, its adjoint and its update, as operations over named buffers.

Each operation is a line of arithmetic in :mod:`snnc.compiler.ir.step_operations`::

    StepProgram = buffers, forward: [ForwardOp], backward: [BackwardOp], update: [UpdateOp], loss, optimizer
    ForwardOp   = Fill | ConnectionOp | NeuronStep | Record
    ConnectionOp     = DenseProduct | SparseProduct | AddOneToOne | Convolve | Pooling | Rescale | AddReduced | AddSlice | AddPadded
    BackwardOp  = RecordAdjoint | NeuronAdjoint | BiasGradient | DenseInputGradient | DenseWeightGradient
                | SparseInputGradient | SparseWeightGradient | OneToOneInputGradient | OneToOneWeightGradient
                | ConvolveInputGradient | ConvolveWeightGradient | ConvolveBiasGradient
                | PoolingGradient | RescaleInputGradient | RescaleWeightGradient | RescaleBiasGradient
                | ReduceGradient | SliceGradient | PadGradient
    UpdateOp    = OptimizerStep

One training step, for a batch::

    set states to their initial values; for t = 0 … T-1: run `forward`
    loss(records) -> adjoints of the records, all steps
    for t = T-1 … 0: run `backward`; then run `update`

Canonical ids (the only names in emitted code): inputs ``x0``, populations ``p0``, connections ``c0``, outputs ``y0``.
A buffer is called ``<id>_<part>``. The author's names are in ``labels``. Only populations, inputs and connections
remain at this level: Add, Concat, Flatten and Reshape have become connections and relay populations.

Buffers are vectors (a sample at a step); an operation on arrays of several axes holds their geometry, in C order.
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

    `shape` holds neither batch nor time. A buffer of lifetime "program" has exactly this shape; "step" means [B, *shape], valid
    within one step; "sequence" means [T, B, *shape], slot t written at step t ("state" buffers have T + 1 slots: slot 0
    is the initial state, slot t + 1 the state after step t). `order` is the order in which values with channels are stored (None: the
    author's order); only operations described by tables use it.
    """

    name: str
    role: Role
    shape: Shape
    lifetime: Lifetime
    kind: Kind = "values"
    order: ChannelOrder | None = None


# ---- what the ids refer to --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InputInfo:
    """A network input; `layout` is the layout in the model's file; a static input is the same at every step.

    `varies`: what is sent of it is chosen at random, so it differs from step to step.
    """

    id: str
    label: str
    shape: Shape
    kind: Kind
    layout: FileLayout
    varies: bool = field(default=False, metadata={"optional": True})

    @property
    def static(self) -> bool:
        """True if the file gives no time axis."""
        return self.layout.time_axis is None

    @property
    def repeated(self) -> bool:
        """True if a machine receives it once, and sends the same at every step."""
        return self.static and not self.varies


@dataclass(frozen=True, eq=False)
class PopulationInfo:
    """A population: `ports` are its currents' buffers, `output_buffers` map used output ports to sequence buffers."""

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
    """Whether the adjoint of its current is stored at every step, for a caller."""

    @property
    def before(self) -> dict[str, Array]:
        """Nonzero values that delayed connections read before the first step, by output buffer: a state's own initial values."""
        states = {self.kernel.labels[s]: value for s, value in zip(self.kernel.states, self.initial, strict=True)}
        return {buffer: states[port] for port, buffer in self.output_buffers.items() if port in states and states[port].any()}


@dataclass(frozen=True, eq=False)
class ConnectionInfo:
    """The origin of a connection in the author's terms; source and target are ids (``x0``, ``p1``)."""

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


@dataclass(frozen=True, eq=False)
class OutputInfo:
    """A named result: `record` is the sequence buffer that holds it."""

    id: str
    label: str
    source: BufferValue
    record: str
    shape: Shape
    readout: Readout
    layout: FileLayout
    window: tuple[int, int | None] = (0, None)
    """First step that counts, and the first one after the last that counts (None: all later steps count)."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter buffer with its initial value.

    `label` is the name in ``state_dict``: ``"<node>.weight"``, ``"<node>.bias"``, ``"<population>.<parameter>"``.
    """

    name: str
    label: str
    value: Array
    learnable: bool
    half: bool = field(default=False, metadata={"optional": True})
    """Whether it is stored as float16, to which `value` is rounded."""


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
    """T, if the model or the compile options fix it."""
    state_inputs: Mapping[str, StateRef]
    """Author's name of an explicit state -> (population id, canonical state) or (population id, output port label)."""
    assumptions: tuple[str, ...]
    truncate: int | None = None
    """K: no gradient flows from step t to earlier steps if t is a multiple of K; None: through all steps."""
    rounding: WeightRounding | None = field(default=None, metadata={"optional": True})
    """How updates of parameters that are `half` are rounded; None if there are none."""
