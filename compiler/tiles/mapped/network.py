"""Description of a step program for the mapper: layers (populations), links (connections) and sources, with their sizes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from snnc.compiler.ir.arrays.indexed_maps import IndexedMap, IndexedOp
from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.ir.graph import Kind
from snnc.compiler.ir.step_operations import (
    AddPadded,
    AddReduced,
    AddSlice,
    ConvolveBiasGradient,
    DenseInputGradient,
    Fill,
    InputGradient,
    NeuronStep,
    Pooling,
    RecordAdjoint,
    RescaleBiasGradient,
    WeightGradient,
)
from snnc.compiler.ir.step_program import ConnectionInfo, PopulationInfo, StepProgram
from snnc.compiler.losses.update_rules import rule_of
from snnc.compiler.losses.weight_rounding import Rounding
from snnc.compiler.lowering.gradient_support import support_bounds
from snnc.compiler.lowering.statistics import passes_of, statistics_inputs, statistics_on_device, stored_adjoints
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.library import Quotient, Relay
from snnc.compiler.tiles.indexed.indexed_links import IndexedLink, MapCuts
from snnc.compiler.tiles.mapped.losses import LossShape, loss_shape
from snnc.compiler.tiles.mapped.operations import SGD_CYCLES, square_cycles, update_cycles


@dataclass(frozen=True)
class BusSource:
    """A buffer transported by buses: an input (`external`), or an output port of a population.

    `owner` is the id of the input or population, `width` the number of values per sample and step. A static input is the same at every
    step. A `windowed` source needs gradients only for neurons that spiked or are near the threshold.
    """

    buffer: str
    owner: str
    width: int
    kind: Kind
    external: bool
    static: bool = False
    windowed: bool = False


@dataclass(frozen=True)
class Link:
    """A connection."""

    id: str
    source: BusSource
    target: str
    port: int
    dense: bool
    delay: int
    inputs: int
    outputs: int
    """Number of values of the source, and of neurons of the target."""
    weight_elements: int
    """Number of weights: inputs x outputs if dense; 0, 1 or `inputs` if one to one; 0 if indexed."""
    weight_gradient: bool
    input_gradient: bool
    """Whether the backward step computes the gradient of the weights, and of the source."""
    indexed: IndexedLink | None = None
    """The connection as an indexed one, with its tables; None if it is dense or one to one."""
    sparse_values: bool = False
    """Whether the connection is dense and reads sums or averages of spikes, which are mostly 0."""
    half: bool = False
    """Whether the weights are float16."""
    half_deltas: bool = False
    """Whether the source reads deltas as float16, two samples per word."""

    @property
    def delta_bytes(self) -> int:
        """Bytes of a delta that the source reads."""
        return HALF if self.half_deltas else FLOAT

    @property
    def chooses(self) -> bool:
        """Whether the connection computes a maximum, which chooses one entry."""
        return self.indexed is not None and self.indexed.map.maximum

    @property
    def read_backward(self) -> bool:
        """Whether the target reads the window again: for the weight gradient, or to find the entry chosen by a maximum."""
        return self.weight_gradient or (self.input_gradient and self.chooses)

    @property
    def one_to_one(self) -> bool:
        """Whether each value of the source reaches exactly one neuron, in the same order."""
        return not self.dense and self.indexed is None

    @property
    def events(self) -> bool:
        """Whether the connection transports ids of spikes, not values."""
        return self.source.kind == "spikes"


@dataclass(frozen=True)
class LearnedParameter:
    """A trained parameter or bias of a population.

    `buffer` contains its values. The kernel computes its gradient under the name `gradient`, which is added to the sum `name`. If `shared`,
    all neurons have the same value.
    """

    buffer: str
    name: str
    gradient: str
    shared: bool


@dataclass(frozen=True)
class Past:
    """Number of values that an adjoint reads from every step: states (before and after each step) and other values, by type."""

    states: int
    others: int
    half_states: int
    half_others: int

    def floats(self, steps: Any) -> Any:
        """Return the number of float32 values per neuron and sample for `steps` steps."""
        return (steps + 1) * self.states + steps * self.others

    def halves(self, steps: Any) -> Any:
        """Return the number of float16 values per neuron and sample for `steps` steps."""
        return (steps + 1) * self.half_states + steps * self.half_others


@dataclass(frozen=True, eq=False)
class Layer:
    """A population with its links and parameters."""

    id: str
    label: str
    neurons: int
    kernel: Kernel
    incoming: tuple[Link, ...]
    outgoing: tuple[Link, ...]
    parameters: tuple[bool, ...]
    """For each parameter of the kernel, whether all neurons share one value."""
    biases: tuple[tuple[bool, ...], ...]
    """For each bias of each port, whether all neurons share one value."""
    learned: tuple[LearnedParameter, ...]
    outputs: tuple[str, ...]
    sent: tuple[BusSource, ...]
    """Output buffers transported by buses."""
    recorded: tuple[str, ...]
    """Buffer of each network output that the population writes."""
    adjoint_outputs: frozenset[str]
    """Output buffers that receive a gradient from a record."""
    gradient: bool
    """Whether the backward step includes the population."""
    stores_adjoint: bool = False
    """Whether the adjoint of the input current is stored for all steps, for a caller that reads it."""
    computes_statistics: bool = False
    """Whether one of the outputs is recorded only for its mean and variance, which the tiles compute for each block."""

    @property
    def past(self) -> Past:
        """Number of values that the adjoint reads from all steps."""
        if not self.gradient:
            return Past(0, 0, 0, 0)
        kernel = self.kernel
        halves = sum(name in kernel.rounded for name in kernel.history), sum(name in kernel.rounded for name in kernel.saved)
        return Past(len(kernel.history) - halves[0], len(kernel.saved) - halves[1], *halves)

    @property
    def states_outside_history(self) -> tuple[int, int]:
        """Number of float32 and of float16 states that are stored apart from the history.

        If a state has the type of its history, the history contains the current value, so the state is not counted.
        """
        kernel = self.kernel
        within = sum(name in kernel.halves for name in kernel.history) if self.gradient else 0
        return len(kernel.states) - len(kernel.halves) - self.past.states, len(kernel.halves) - within

    @property
    def half_weights(self) -> int:
        """Number of float16 weights per neuron, without weights of indexed connections."""
        return sum(link.inputs if link.dense else 1 for link in self.incoming if link.half and link.indexed is None)

    @property
    def half_dense_weights(self) -> bool:
        """Whether dense connections into the population have float16 weights."""
        return any(link.half and link.dense for link in self.incoming)

    @property
    def half_other_weights(self) -> bool:
        """Whether connections into the population that are not dense have float16 weights."""
        return any(link.half and not link.dense for link in self.incoming)

    @property
    def neuron_parameters(self) -> int:
        """Number of parameters, including biases, with one value per neuron."""
        return len(self._shared) - self.scalar_parameters

    @property
    def scalar_parameters(self) -> int:
        """Number of parameters, including biases, with one value for all neurons."""
        return sum(self._shared)

    @property
    def _shared(self) -> tuple[bool, ...]:
        return self.parameters + tuple(shared for port in self.biases for shared in port)

    @property
    def learnable_neuron_parameters(self) -> int:
        """Number of trained parameters with one value per neuron."""
        return len(self.learned) - self.learnable_scalars

    @property
    def learnable_scalars(self) -> int:
        """Number of trained parameters with one value for all neurons."""
        return sum(parameter.shared for parameter in self.learned)

    @property
    def records(self) -> int:
        """Number of network outputs that the population writes."""
        return len(self.recorded)


@dataclass(frozen=True, eq=False)
class MappedNetwork:
    """Description of a network: all layers in order, inputs, links, and the properties of training."""

    layers: tuple[Layer, ...]
    inputs: tuple[BusSource, ...]
    links: tuple[Link, ...]
    training: bool
    loss_layer: str | None
    loss: LossShape
    moments: int
    """Number of optimiser values stored for each parameter (Adam 2, SGD with momentum 1)."""
    update: int = SGD_CYCLES
    """Worker cycles of the optimiser per parameter."""
    accumulates: bool = False
    norm_cycles: int = 0
    """Worker cycles to add a gradient to the norm of all gradients; 0 if no norm is needed."""
    scaled: bool = False
    """Whether the gradient of the loss is multiplied by a loss scale."""
    extra_passes: int = 0
    """Number of additional forward and of additional backward passes of an update for batch normalisations; the update is then a
    separate program."""
    whole_passes: bool = False
    """Whether another forward pass precedes each additional backward pass, because a normalisation reads the statistics of each step."""
    rounding: Rounding | None = None
    """Rounding of updates of float16 weights; None if no such weight is updated."""
    operation: bool = False
    """Whether forward and backward pass are two operations in the graph of another framework, the second of which runs forward again."""

    @property
    def computes_statistics(self) -> bool:
        """Whether tiles compute statistics of a batch."""
        return any(layer.computes_statistics for layer in self.layers)

    @property
    def half_weights(self) -> bool:
        """Whether any weights are float16."""
        return any(link.half for link in self.links)

    @property
    def half_deltas(self) -> bool:
        """Whether any source reads deltas as float16, so that blocks have samples in pairs."""
        return any(link.half_deltas for link in self.links)

    @property
    def optimiser_values(self) -> int:
        """Number of values stored for each parameter in addition to itself and its gradient."""
        return self.moments + self.accumulates

    @property
    def external(self) -> bool:
        """Whether a caller computes the loss and the update: it passes the adjoint of the output and reads the gradients."""
        return self.training and self.loss.external

    @property
    def indexed(self) -> tuple[Link, ...]:
        """Indexed connections."""
        return tuple(link for link in self.links if link.indexed is not None)

    @property
    def windowed(self) -> frozenset[BusSource]:
        """Sources whose gradients can return in windows over dense connections.

        Sources that a maximum reads are excluded: it finds the chosen entry only in windows of spikes.
        """
        possible = frozenset(link.source for link in self.links if link.dense and link.input_gradient and link.source.windowed)
        return possible - {link.source for link in self.links if link.chooses}

    @property
    def sources(self) -> tuple[BusSource, ...]:
        """Every buffer that some link reads, inputs first."""
        return tuple(dict.fromkeys([*self.inputs, *(s for layer in self.layers for s in layer.sent)]))


def describe(program: StepProgram, training: bool | None = None) -> MappedNetwork:
    """Return the description of `program`; with `training` None, the network trains if the program has a loss and an optimiser."""
    if training is None:
        training = program.loss is not None and program.optimizer is not None
    shape = loss_shape(program)
    external = training and shape.external
    optimizer = program.optimizer if training and not external else None
    rule, accumulates = (None, False) if optimizer is None else (rule_of(optimizer), optimizer.accumulate)
    scaled = rule is not None and rule.loss_scale is not None
    has_norm = scaled or (rule is not None and rule.clip_norm is not None)
    inputs = {i.id: i.repeated for i in program.inputs}
    sources = {c.source_buffer: _source(program, c, inputs) for c in program.connections}
    cuts: dict[IndexedMap, MapCuts] = {}
    links = tuple(_link(program, c, sources[c.source_buffer], training, cuts) for c in program.connections)
    stored, on_device = stored_adjoints(program) if training else (), statistics_on_device(program) if training and not external else ()
    loss = None if external else next((o for o in program.outputs if o.id == program.loss_output), None)
    return MappedNetwork(
        layers=tuple(_layer(program, p, links, training, stored, on_device) for p in program.populations),
        inputs=tuple(s for s in sources.values() if s.external),
        links=links,
        training=training,
        loss_layer=next((p.id for p in program.populations if loss and loss.source.buffer in _buffers(program, p)), None),
        loss=shape,
        moments=0 if rule is None else len(rule.moments),
        update=0 if external else SGD_CYCLES if rule is None else update_cycles(rule, accumulates=accumulates and not has_norm),
        accumulates=accumulates,
        norm_cycles=0 if rule is None else square_cycles(rule, accumulates=accumulates),
        scaled=scaled,
        extra_passes=passes_of(program) if training and not external else 0,
        whole_passes=bool(statistics_inputs(program)),
        rounding=program.rounding.kind if training and not external and program.rounding is not None else None,
    )


def _source(program: StepProgram, connection: ConnectionInfo, inputs: Mapping[str, bool]) -> BusSource:
    buffer = program.buffers[connection.source_buffer]
    return BusSource(
        buffer.name,
        connection.source,
        math.prod(buffer.shape),
        buffer.kind,
        connection.source in inputs,
        inputs.get(connection.source, False),
        _windowed(program, connection),
    )


def _windowed(program: StepProgram, connection: ConnectionInfo) -> bool:
    """Return whether only some neurons of a connection's source receive a gradient: the source spikes, and its surrogate has bounds."""
    population = next((p for p in program.populations if p.id == connection.source), None)
    if population is None:
        return False
    outputs = _step(program, population).outputs
    if connection.source_buffer not in outputs or program.buffers[connection.source_buffer].kind != "spikes":
        return False
    return support_bounds(population, population.kernel.outputs[outputs.index(connection.source_buffer)]) is not None


def _link(program: StepProgram, connection: ConnectionInfo, source: BusSource, training: bool, cuts: dict[IndexedMap, MapCuts]) -> Link:
    target = program.population(connection.target)
    backward = program.backward if training else ()
    backward_of_link = [op for op in backward if getattr(op, "connection", None) == connection.id]
    dense = connection.kind == "dense"
    op = next((op for op in program.forward if isinstance(op, IndexedOp) and op.connection == connection.id), None)
    learned = {step.parameter for step in program.update} if training else set()
    weight, bias = connection.weight in learned, connection.bias in learned
    indexed = None if op is None else IndexedLink(op, program.buffers, weight, bias, cuts)
    return Link(
        id=connection.id,
        source=source,
        target=connection.target,
        port=connection.port,
        dense=dense,
        delay=connection.delay,
        inputs=source.width,
        outputs=source.width if op is None and not dense else math.prod(target.shape),
        weight_elements=math.prod(program.buffers[connection.weight].shape) if connection.weight and op is None else 0,
        weight_gradient=any(isinstance(op, WeightGradient | ConvolveBiasGradient | RescaleBiasGradient) for op in backward_of_link),
        input_gradient=any(isinstance(op, InputGradient) for op in backward_of_link),
        indexed=indexed,
        sparse_values=reads_sparse_values(program, connection),
        half_deltas=any(isinstance(op, DenseInputGradient) and op.half for op in backward_of_link),
        half=connection.weight is not None and program.parameters[connection.weight].half,
    )


def reads_sparse_values(program: StepProgram, connection: ConnectionInfo) -> bool:
    """Return whether `connection` is dense and reads only sums, averages, slices or padded copies of spikes, without biases and maxima.

    Most of these values are 0; tile programs skip zeros.
    """
    if connection.kind != "dense":
        return False
    source = next((p for p in program.populations if p.id == connection.source), None)
    if source is None or source.model not in (Relay(), Quotient()) or program.buffers[connection.source_buffer].kind != "values":
        return False
    incoming = [op for op in program.forward if getattr(op, "target", None) in source.ports]
    sums = [op for op in incoming if not isinstance(op, Fill)]
    if not sums or any(isinstance(op, Fill) and op.biases for op in incoming):
        return False
    return all(
        isinstance(op, Pooling | AddReduced | AddSlice | AddPadded)
        and getattr(op, "kind", "") != "max"
        and program.buffers[op.source.buffer].kind == "spikes"
        for op in sums
    )


def _buffers(program: StepProgram, population: PopulationInfo) -> set[str]:
    step = _step(program, population)
    return {*population.output_buffers.values(), *step.outputs, *step.states}


def _step(program: StepProgram, population: PopulationInfo) -> NeuronStep:
    return next(op for op in program.forward if isinstance(op, NeuronStep) and op.population == population.id)


def _layer(
    program: StepProgram,
    population: PopulationInfo,
    links: tuple[Link, ...],
    training: bool,
    stored: Collection[str],
    on_device: Collection[str],
) -> Layer:
    """Describe a population.

    The adjoints of the populations in `stored` are stored at all steps; tiles compute statistics of those in `on_device`.
    """
    buffers, step = _buffers(program, population), _step(program, population)
    neurons = math.prod(population.shape)
    backward = program.backward if training else ()
    sent = dict.fromkeys(link.source for link in links if link.source.owner == population.id)
    fills = [op for op in program.forward if isinstance(op, Fill)]
    biases = [tuple(bias for op in fills if op.target == port for bias in op.biases) for port in population.ports]

    def shared(names: Iterable[str]) -> tuple[bool, ...]:
        return tuple(math.prod(program.buffers[name].shape) == 1 and neurons > 1 for name in names)

    buffer_of = dict(zip(population.kernel.parameters, step.parameters, strict=True))
    learnable = [(buffer_of[a], f"d_{a}", f"d_{a}") for a in population.kernel.learnable]
    learnable += [(b, f"d_bias{port}_{n}", f"d_i{port}") for port, names in enumerate(biases) for n, b in enumerate(names)]
    updated = {op.parameter for op in program.update} if training else set()
    return Layer(
        id=population.id,
        label=population.label,
        neurons=neurons,
        kernel=population.kernel,
        incoming=tuple(link for link in links if link.target == population.id),
        outgoing=tuple(link for link in links if link.source.owner == population.id),
        parameters=shared(step.parameters),
        biases=tuple(shared(names) for names in biases),
        learned=tuple(LearnedParameter(*names, *shared(names[:1])) for names in learnable if names[0] in updated),
        outputs=step.outputs,
        sent=tuple(sent),
        recorded=tuple(o.source.buffer for o in program.outputs if o.source.buffer in buffers),
        adjoint_outputs=frozenset(op.source.buffer for op in backward if isinstance(op, RecordAdjoint) and op.source.buffer in buffers),
        gradient=any(getattr(op, "population", None) == population.id for op in backward),
        stores_adjoint=training and (population.shown or population.id in stored),
        computes_statistics=population.id in on_device,
    )
