"""StepProgram: a network's time step, its adjoint and its update, as operations over named buffers, on one page.

::

    StepProgram = buffers, forward: [ForwardOp], backward: [BackwardOp], update: [UpdateOp], loss, optimizer
    ForwardOp   = Fill | Dense | OneToOne | NeuronStep | Record
    BackwardOp  = RecordAdjoint | NeuronAdjoint | DenseInputGradient | DenseWeightGradient | OneToOneInputGradient
                | OneToOneWeightGradient | BiasGradient
    UpdateOp    = OptimizerStep

One training step, for a batch::

    set states to their initial values; for t = 0 … T-1: run `forward`
    loss(records) -> adjoints of the records, all steps
    for t = T-1 … 0: run `backward`; then run `update`

Canonical ids (the only names emitted code holds): inputs ``x0``, populations ``p0``, connections ``c0``, outputs ``y0``.
A buffer is called ``<id>_<part>``. Author's names stand in ``labels``. Only populations, inputs and connections
remain at this level: Add, Concat and Flatten have become connections and relay populations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snnc.compiler.graph import Array, Kind, Layout, Readout, Shape, StateRef
from snnc.compiler.kernel import Kernel
from snnc.compiler.losses import Loss
from snnc.compiler.neuron import NeuronModel
from snnc.compiler.optimizers import Optimizer
from snnc.compiler.surrogate import Surrogate

Role: TypeAlias = Literal["parameter", "gradient", "input", "current", "state", "output", "saved", "record", "adjoint"]
Lifetime: TypeAlias = Literal["program", "sequence", "step"]


@dataclass(frozen=True)
class Buffer:
    """A named array.

    `shape` holds neither batch nor time. A buffer of lifetime "program" has that very shape; "step" means [B, *shape], valid
    within one step; "sequence" means [T, B, *shape], slot t written at step t ("state" buffers have T + 1 slots: slot 0
    is the initial state, slot t + 1 the state after step t).
    """

    name: str
    role: Role
    shape: Shape
    lifetime: Lifetime
    kind: Kind = "values"


@dataclass(frozen=True)
class Value:
    """What a buffer of lifetime "sequence" held `delay` steps ago (its initial value, mostly 0, before step `delay`)."""

    buffer: str
    delay: int = 0


# ---- forward ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fill:
    """``target[:] = bias`` (0 where `bias` is None): starts the current of one input port; several biases are summed."""

    target: str
    biases: tuple[str, ...]


@dataclass(frozen=True)
class Dense:
    """``target += source @ weight.T``; weight [outputs, inputs]; sources of kind "spikes" are event-driven."""

    connection: str
    source: Value
    weight: str
    target: str


@dataclass(frozen=True)
class OneToOne:
    """``target[..., offset : offset + n] += weight * source`` (weight None: 1), n = size of the source."""

    connection: str
    source: Value
    weight: str | None
    target: str
    offset: int = 0


@dataclass(frozen=True)
class NeuronStep:
    """Run ``kernel.forward`` of a population; the tuples run parallel to those of the kernel.

    `states` are sequence buffers (reads slot t as ``s*_prev``, writes slot t + 1); `saved` are sequence buffers that
    keep ``kernel.saved``.
    """

    population: str
    currents: tuple[str, ...]
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    saved: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """``target[t] = source[t]``: keeps a result of every step for the host and the loss."""

    output: str
    source: Value
    target: str


# ---- backward: an adjoint buffer is called d_<buffer>, zero where nothing has been added -----------------------------


@dataclass(frozen=True)
class RecordAdjoint:
    """``d_source[t - delay] += d_target[t]`` (dropped where t < delay)."""

    output: str
    source: Value
    target: str


@dataclass(frozen=True)
class NeuronAdjoint:
    """Run ``kernel.backward``: reads d_outputs[t] and the state adjoints; writes d_currents[t]; adds to parameter gradients."""

    population: str
    currents: tuple[str, ...]
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    saved: tuple[str, ...]
    gradients: tuple[str, ...]
    """Gradient buffers, parallel to ``kernel.learnable``."""


@dataclass(frozen=True)
class DenseInputGradient:
    """``d_source[t - delay] += d_target[t] @ weight`` (dropped where t < delay)."""

    connection: str
    source: Value
    weight: str
    target: str


@dataclass(frozen=True)
class DenseWeightGradient:
    """``gradient += d_target[t].T @ source[t - delay]``, summed over the batch."""

    connection: str
    source: Value
    target: str
    gradient: str


@dataclass(frozen=True)
class OneToOneInputGradient:
    """``d_source[t - delay] += weight * d_target[t][offset : offset + n]``."""

    connection: str
    source: Value
    weight: str | None
    target: str
    offset: int = 0


@dataclass(frozen=True)
class OneToOneWeightGradient:
    """``gradient += sum over the batch of d_target[t][offset : offset + n] * source[t - delay]`` (over neurons too for a scalar)."""

    connection: str
    source: Value
    target: str
    gradient: str
    offset: int = 0


@dataclass(frozen=True)
class BiasGradient:
    """``gradient += sum over the batch of d_target[t]``."""

    target: str
    gradient: str


# ---- update ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OptimizerStep:
    """Change `parameter` by the program's optimizer; its state (moments) belongs to the backend."""

    parameter: str
    gradient: str


ForwardOp: TypeAlias = Fill | Dense | OneToOne | NeuronStep | Record
BackwardOp: TypeAlias = (
    RecordAdjoint | NeuronAdjoint | DenseInputGradient | DenseWeightGradient | OneToOneInputGradient | OneToOneWeightGradient | BiasGradient
)


# ---- what the ids stand for ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InputInfo:
    """A network input; `layout` is that of the model's file; a static input is the same at every step."""

    id: str
    label: str
    shape: Shape
    kind: Kind
    layout: Layout

    @property
    def static(self) -> bool:
        """True when the file gives no time axis."""
        return self.layout.time_axis is None


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


@dataclass(frozen=True, eq=False)
class ConnectionInfo:
    """Where a connection comes from in the author's terms; source and target are ids (``x0``, ``p1``)."""

    id: str
    label: str
    source: str
    source_buffer: str
    target: str
    port: int
    kind: Literal["dense", "one_to_one"]
    delay: int
    weight: str | None
    bias: str | None
    event_driven: bool


@dataclass(frozen=True, eq=False)
class OutputInfo:
    """A named result: `record` is the sequence buffer that holds it."""

    id: str
    label: str
    source: Value
    record: str
    shape: Shape
    readout: Readout
    layout: Layout


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter buffer with its initial value.

    `label` is the name in ``state_dict``: ``"<node>.weight"``, ``"<node>.bias"``, ``"<population>.<parameter>"``.
    """

    name: str
    label: str
    value: Array
    learnable: bool


@dataclass(frozen=True, eq=False)
class StepProgram:
    """A whole network, ready to be run, mapped or printed; see the module's page."""

    name: str
    buffers: Mapping[str, Buffer]
    forward: tuple[ForwardOp, ...]
    backward: tuple[BackwardOp, ...]
    update: tuple[OptimizerStep, ...]
    inputs: tuple[InputInfo, ...]
    populations: tuple[PopulationInfo, ...]
    """In an order in which every delay-0 connection runs forward."""
    connections: tuple[ConnectionInfo, ...]
    outputs: tuple[OutputInfo, ...]
    parameters: Mapping[str, Parameter]
    loss: Loss | None
    loss_output: str | None
    """Id of the output that the loss reads."""
    optimizer: Optimizer | None
    steps: int | None
    """T, when the model or the compile options fix it."""
    state_inputs: Mapping[str, StateRef]
    """Author's name of an explicit state -> (population id, canonical state) or (population id, output port label)."""
    assumptions: tuple[str, ...]
