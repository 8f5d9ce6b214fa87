"""StepProgram: a network's time step, its adjoint and its update, as operations over named buffers, on one page.

::

    StepProgram = buffers, forward: [ForwardOp], backward: [BackwardOp], update: [UpdateOp], loss, optimizer
    ForwardOp   = Fill | Arrival | NeuronStep | Record
    Arrival     = Dense | OneToOne | Convolve | Pooling | Rescale | Reduction | Cut      (what a connection does)
    BackwardOp  = RecordAdjoint | NeuronAdjoint | BiasGradient | DenseInputGradient | DenseWeightGradient
                | OneToOneInputGradient | OneToOneWeightGradient | ConvolveInputGradient | ConvolveWeightGradient | ConvolveBiasGradient
                | PoolingGradient | RescaleInputGradient | RescaleWeightGradient | RescaleBiasGradient | ReductionGradient | CutGradient
    UpdateOp    = OptimizerStep

One training step, for a batch::

    set states to their initial values; for t = 0 … T-1: run `forward`
    loss(records) -> adjoints of the records, all steps
    for t = T-1 … 0: run `backward`; then run `update`

Canonical ids (the only names emitted code holds): inputs ``x0``, populations ``p0``, connections ``c0``, outputs ``y0``.
A buffer is called ``<id>_<part>``. Author's names stand in ``labels``. Only populations, inputs and connections
remain at this level: Add, Concat, Flatten and Reshape have become connections and relay populations.

Buffers are vectors (a sample at a step); an operation on arrays of several axes carries their geometry, in C order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snnc.compiler.graph import Array, Kind, Layout, PoolKind, Readout, ReduceKind, Shape, StateRef
from snnc.compiler.kernel import Kernel
from snnc.compiler.losses import Loss
from snnc.compiler.neuron import NeuronModel
from snnc.compiler.optimizers import Optimizer
from snnc.compiler.surrogate import Surrogate
from snnc.compiler.windows import Windows

Role: TypeAlias = Literal["parameter", "gradient", "input", "current", "state", "output", "saved", "record", "adjoint"]
Lifetime: TypeAlias = Literal["program", "sequence", "step"]
ConnectionKind: TypeAlias = Literal["dense", "one_to_one", "convolution", "pooling", "scale", "reduction", "slice"]


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
class Convolve:
    """``target += correlate(source, weight) + bias``; weight [out, in / groups, *kernel], bias [out] (None: 0) for each channel."""

    connection: str
    source: Value
    weight: str
    target: str
    windows: Windows
    groups: int
    bias: str | None


@dataclass(frozen=True)
class Pooling:
    """``target += average, sum or maximum of each window of source``; padding is 0, for a maximum minus infinity.

    An average divides by the taps that lie in the input, with `count_padding` by those in the padded input.
    """

    connection: str
    source: Value
    target: str
    windows: Windows
    kind: PoolKind
    count_padding: bool


@dataclass(frozen=True)
class Rescale:
    """``target += weight * source + bias`` (bias None: 0), where weight and bias broadcast to `shape`, the source's."""

    connection: str
    source: Value
    weight: str
    target: str
    shape: Shape
    bias: str | None


@dataclass(frozen=True)
class Reduction:
    """``target += sum, mean or maximum of source over axes``, where source has `shape`; axes are counted from the front."""

    connection: str
    source: Value
    target: str
    shape: Shape
    axes: tuple[int, ...]
    kind: ReduceKind


@dataclass(frozen=True)
class Cut:
    """``target += source[start:stop]`` along `axis`, where source has `shape`."""

    connection: str
    source: Value
    target: str
    shape: Shape
    axis: int
    start: int
    stop: int


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


@dataclass(frozen=True)
class ConvolveInputGradient:
    """``d_source[t - delay] += `` the adjoint of :class:`Convolve`, of ``d_target[t]`` (dropped where t < delay)."""

    connection: str
    source: Value
    weight: str
    target: str
    windows: Windows
    groups: int


@dataclass(frozen=True)
class ConvolveWeightGradient:
    """``gradient += d_target[t]`` times what each tap read in ``source[t - delay]``, summed over the batch and the windows."""

    connection: str
    source: Value
    target: str
    gradient: str
    windows: Windows
    groups: int


@dataclass(frozen=True)
class ConvolveBiasGradient:
    """``gradient += d_target[t]``, summed over the batch and the windows of each channel."""

    connection: str
    target: str
    gradient: str


@dataclass(frozen=True)
class PoolingGradient:
    """``d_source[t - delay] += `` the adjoint of :class:`Pooling`, of ``d_target[t]``; that of a maximum goes to the first of equals."""

    connection: str
    source: Value
    target: str
    windows: Windows
    kind: PoolKind
    count_padding: bool


@dataclass(frozen=True)
class RescaleInputGradient:
    """``d_source[t - delay] += weight * d_target[t]``."""

    connection: str
    source: Value
    weight: str
    target: str
    shape: Shape


@dataclass(frozen=True)
class RescaleWeightGradient:
    """``gradient += d_target[t] * source[t - delay]``, summed over the batch and the axes along which the weight is broadcast."""

    connection: str
    source: Value
    target: str
    gradient: str
    shape: Shape


@dataclass(frozen=True)
class RescaleBiasGradient:
    """``gradient += d_target[t]``, summed over the batch and the axes along which the bias is broadcast."""

    connection: str
    target: str
    gradient: str
    shape: Shape


@dataclass(frozen=True)
class ReductionGradient:
    """``d_source[t - delay] += `` the adjoint of :class:`Reduction`, of ``d_target[t]``; that of a maximum goes to the first of equals."""

    connection: str
    source: Value
    target: str
    shape: Shape
    axes: tuple[int, ...]
    kind: ReduceKind


@dataclass(frozen=True)
class CutGradient:
    """``d_source[t - delay][start:stop] += d_target[t]`` along `axis`."""

    connection: str
    source: Value
    target: str
    shape: Shape
    axis: int
    start: int
    stop: int


# ---- update ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OptimizerStep:
    """Change `parameter` by the program's optimizer; its state (moments) belongs to the backend."""

    parameter: str
    gradient: str


Arrival: TypeAlias = Dense | OneToOne | Convolve | Pooling | Rescale | Reduction | Cut
"""What a connection adds to a current."""
ForwardOp: TypeAlias = Fill | Arrival | NeuronStep | Record
InputGradient: TypeAlias = (
    DenseInputGradient
    | OneToOneInputGradient
    | ConvolveInputGradient
    | PoolingGradient
    | RescaleInputGradient
    | ReductionGradient
    | CutGradient
)
WeightGradient: TypeAlias = DenseWeightGradient | OneToOneWeightGradient | ConvolveWeightGradient | RescaleWeightGradient
AnyBiasGradient: TypeAlias = BiasGradient | ConvolveBiasGradient | RescaleBiasGradient
BackwardOp: TypeAlias = RecordAdjoint | NeuronAdjoint | AnyBiasGradient | InputGradient | WeightGradient


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
