"""Lowering of a graph to a step program: ids and buffers, the forward operations of one step, and the additions for training.

See :mod:`snnc.compiler.ir.step_program` for the result and :mod:`snnc.compiler.lowering.lower_backward` for the backward half.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from snnc.compiler.ir.connections import PopulationLink, execution_order, links, recorded, recurrent
from snnc.compiler.ir.graph import Graph, Input, Output, Population, StateRef, source_ports
from snnc.compiler.ir.shapes import port_map, size
from snnc.compiler.ir.step_operations import BufferValue, Fill, ForwardOp, NeuronStep, OptimizerStep, Record
from snnc.compiler.ir.step_program import (
    ConnectionInfo,
    InputInfo,
    OutputInfo,
    PopulationInfo,
    StepProgram,
)
from snnc.compiler.ir.verify import verify
from snnc.compiler.losses import Loss
from snnc.compiler.losses.optimizers import Optimizer, is_frozen
from snnc.compiler.losses.weight_rounding import WeightRounding, nearest
from snnc.compiler.lowering.composed_loss import with_loss_output
from snnc.compiler.lowering.connection_operations import bias_initialises_current, connection_op, kind_of, weights_of
from snnc.compiler.lowering.halves import Half, Halves, check_halves, half_deltas, half_weights, with_half_states
from snnc.compiler.lowering.lower_backward import Draft, check_groups, find_trained, lower_backward
from snnc.compiler.lowering.spike_limits import SpikeLimit, limit_values, spike_sources
from snnc.compiler.lowering.statistics import check_order, with_statistics
from snnc.compiler.lowering.window_values import with_window_values
from snnc.compiler.neurons.derived_kernels import cached_kernel
from snnc.compiler.neurons.forward_kernel import forward_kernel
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.library.batch_norm import is_batch_norm, through_statistics
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.rounded_values import float16_values, rounded_values
from snnc.compiler.neurons.surrogates.library import atan
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.compiler.passes.flow import run_flow


def lower(
    graph: Graph,
    *,
    loss: Loss | None = None,
    loss_output: str | None = None,
    optimizer: Optimizer | None = None,
    surrogate: Surrogate | None = None,
    gradient_window: tuple[float, float] | None = None,
    steps: int | None = None,
    train_recurrent: bool = True,
    truncate: int | None = None,
    limit: SpikeLimit | None = None,
    half: Collection[Half] = (),
    rounding: WeightRounding | None = None,
) -> StepProgram:
    """Verify `graph`, run the default flow of passes, and lower it to a step program.

    Parameters
    ----------
    graph
        A graph from any frontend; not changed.
    loss
        With a loss, the program includes the backward step; otherwise only the forward step.
    loss_output
        An output, a population or ``"population.port"`` that the loss reads; by default the choice of
        :func:`~snnc.compiler.lowering.loss_output.choose_loss_output`.
    optimizer
        With a loss and an optimiser, the program includes the update.
    surrogate
        Derivative of ``spike`` for populations without their own; ``atan(2)`` by default.
    gradient_window
        Restrict every surrogate of a step function to ``low < x < high``, see
        :meth:`~snnc.compiler.neurons.surrogates.surrogate.Surrogate.windowed`.
        This is the widest window; its bounds are run-time values (:mod:`snnc.compiler.lowering.window_values`).
    steps
        Number of steps T, if it is fixed; by default the graph's.
    train_recurrent
        False freezes the weights of connections on a cycle.
    truncate
        Cut the gradient every `truncate` steps: the state from which steps t = truncate, 2 truncate, … start is treated as a constant
        (truncated backpropagation through time; Williams and Peng 1990). The loss still reads every step. None: no truncation.
    limit
        Maximum number of spikes that a source sends in a step (:mod:`snnc.compiler.lowering.spike_limits`); None: all are sent.
    half
        What is stored as float16 (history, weights, deltas, states), in all layers or by layer; see :mod:`snnc.compiler.lowering.halves`.
    rounding
        Rounding of updates of float16 weights; None: to the nearest.
    """
    verify(graph, steps=steps)
    optimizer = None if loss is None else optimizer
    read = None
    if loss is not None:
        graph, read, loss = with_loss_output(graph, loss, loss_output)
        graph = with_statistics(graph)
    graph = run_flow(graph)
    ports = port_map(graph)
    connections = links(graph, ports)
    frozen = frozenset() if loss is None or train_recurrent else recurrent(connections)
    trained: frozenset[str] = frozenset()
    if loss is not None and read is not None:
        check_order(graph, connections)
        trained = find_trained(graph, connections, loss, recorded(graph, read)[0], frozen, optimizer)
    halves = half if isinstance(half, Halves) else Halves(frozenset(half))
    draft = Draft(graph, ports, connections, trained, frozen, surrogate or atan(2.0), gradient_window, optimizer, limit, halves)
    program = _program(draft, read)
    if optimizer is not None:
        check_groups(optimizer, program.parameters.values())
    if "weights" in halves:
        rounding = (rounding or WeightRounding()) if program.update else None
        program = replace(program, parameters=half_weights(program, halves), rounding=rounding)
    if "deltas" in halves:
        program = replace(program, backward=half_deltas(program, halves))
    check_halves(halves, program)
    return replace(program, loss=loss, optimizer=optimizer, steps=graph.steps if steps is None else steps, truncate=truncate)


def _program(draft: Draft, read: str | None) -> StepProgram:
    """Build the program without loss, optimizer and steps; `read` is the name of the output that the loss reads."""
    _add_inputs(draft)
    _add_populations(draft)
    forward = _forward(draft)
    _add_limits(draft, forward)
    outputs, records = _outputs(draft)
    loss_output = next((o for o in outputs if o.label == read), None)
    backward = () if loss_output is None else lower_backward(draft, loss_output)
    return StepProgram(
        name=draft.graph.name,
        buffers=draft.buffers,
        forward=(*forward, *records),
        backward=backward,
        update=() if draft.optimizer is None else tuple(OptimizerStep(p, g) for p, g in draft.gradients.items()),
        inputs=tuple(draft.inputs),
        populations=tuple(draft.populations),
        connections=tuple(draft.connections),
        outputs=tuple(outputs),
        parameters=draft.parameters,
        loss=None,
        loss_output=None if loss_output is None else loss_output.id,
        optimizer=None,
        steps=None,
        state_inputs=_state_inputs(draft),
        assumptions=tuple(draft.graph.assumptions),
    )


def _add_inputs(draft: Draft) -> None:
    for name, operation in draft.graph.of_type(Input):
        id_ = draft.ids[name] = f"x{len(draft.inputs)}"
        draft.inputs.append(InputInfo(id_, name, operation.shape, operation.kind, operation.layout))
        draft.sources[name, "out"] = draft.buffer(f"{id_}_in", "input", size(operation.shape), "sequence", operation.kind)


def _add_populations(draft: Draft) -> None:
    order = execution_order(draft.graph, draft.links)
    draft.ids.update({name: f"p{number}" for number, name in enumerate(order)})
    read = {(link.source, link.source_port) for link in draft.links}
    read |= {recorded(draft.graph, output)[:2] for output, _ in draft.graph.of_type(Output)}
    kernels: dict[object, Kernel] = {}
    for name in order:
        used = tuple(p for p in source_ports(draft.graph.operation(name)) if (name, p) in read)
        _add_population(draft, name, used, kernels)


def _add_population(draft: Draft, name: str, used: tuple[str, ...], kernels: dict[object, Kernel]) -> None:
    """Add a population with its kernel, buffers and parameters; `used` are the ports that are read. Kernels use canonical names."""
    id_, population = draft.ids[name], draft.graph.operation(name)
    assert isinstance(population, Population)
    half = draft.half.of(name)
    model, length, rounds = population.model, size(population.shape), "states" in half
    model = with_half_states(model) if rounds else model
    surrogate = derivative = population.surrogate or draft.surrogate
    trained, window_parts = name in draft.trained, dict[str, str]()
    if draft.gradient_window is not None and not derivative.everywhere:
        surrogate = surrogate.windowed(*draft.gradient_window)
        if trained:
            model, derivative, window_parts = with_window_values(model, derivative, draft.gradient_window)  # bounds are parameters
    learnable = tuple(p for p in model.parameters if p in population.learnable and not is_frozen(draft.optimizer, f"{name}.{p}"))
    kernel = _kernel(model, used, derivative, learnable, trained, kernels, half)
    ports = tuple(draft.buffer(f"{id_}_{i}", "current", length, "step") for i in kernel.inputs)
    states = tuple(draft.buffer(f"{id_}_{s}", "state", length, "sequence") for s in kernel.states)
    outputs = {}
    for canonical, port in zip(kernel.outputs, used, strict=True):
        kind = draft.ports[name, port].kind
        outputs[port] = draft.sources[name, port] = draft.buffer(f"{id_}_{canonical}", "output", length, "sequence", kind)
    saved = tuple(draft.buffer(f"{id_}_saved_{k}", "saved", length, "sequence") for k in kernel.saved)
    parameters = []
    for canonical, label in zip(kernel.parameters, (kernel.labels[a] for a in kernel.parameters), strict=True):
        value = population.parameters.get(label, model.parameters[label])
        part = window_parts.get(label, canonical)
        parameters.append(draft.parameter(f"{id_}_{part}", f"{name}.{label}", value, label in population.learnable, flat=True))
    labels = [kernel.labels[s] for s in kernel.states]
    initial = tuple(np.array(population.initial.get(s, model.states[s]), dtype=np.float32) for s in labels)
    initial = tuple(map(nearest, initial)) if rounds else initial
    draft.populations.append(PopulationInfo(id_, name, population.shape, population.model, kernel, surrogate, initial, ports, outputs))
    draft.steps.append(NeuronStep(id_, ports, states, tuple(parameters), tuple(outputs.values()), saved))


def _kernel(
    model: NeuronModel,
    used: tuple[str, ...],
    surrogate: Surrogate,
    learnable: tuple[str, ...],
    trained: bool,
    kernels: dict[object, Kernel],
    half: frozenset[Half],
) -> Kernel:
    """Derive the kernel of a population, or reuse the kernel of an equal population; without training, it saves no values for an adjoint.

    Its states and its history are stored as float16 if `half` contains them.
    """
    learnable = learnable if trained else ()
    structure = (model.inputs, tuple(model.states), tuple(model.parameters), model.equations)
    key = (structure, used, learnable, surrogate.derivative if trained else None, half & {"states", "history"})
    if key not in kernels:
        kernel = _kernel_with_adjoint(model, surrogate, learnable, used) if trained else forward_kernel(model, used)
        kernel = through_statistics(kernel) if trained and is_batch_norm(model) else kernel
        kernels[key] = _stored_as(kernel, half)
    return kernels[key]


def _stored_as(kernel: Kernel, half: Collection[Half]) -> Kernel:
    if "states" in half:
        kernel = replace(kernel, halves=frozenset(kernel.states))
        kernel = replace(kernel, rounded=float16_values(kernel))
    return replace(kernel, rounded=rounded_values(kernel)) if "history" in half else kernel


def _kernel_with_adjoint(model: NeuronModel, surrogate: Surrogate, learnable: tuple[str, ...], used: tuple[str, ...]) -> Kernel:
    """Return the kernel with its adjoint, from the cache on disk if possible."""

    def derive() -> Kernel:
        from snnc.compiler.neurons.adjoint import derive_kernel  # SymPy takes half a second to import; only uncached kernels need it

        return derive_kernel(model, surrogate, learnable, used)

    return cached_kernel(model, surrogate, learnable, used, derive)


def _forward(draft: Draft) -> list[ForwardOp]:
    """Return the forward operations, each population's currents before its equations, and add connections to the draft."""
    operations: list[ForwardOp] = []
    for info, step in zip(draft.populations, draft.steps, strict=True):
        incoming = [link for link in draft.links if link.target == info.label]
        for number, (port, current) in enumerate(zip(info.model.inputs, info.ports, strict=True)):
            incoming_here = [(_connect(draft, link, number), link) for link in incoming if link.target_port == port]
            operations.append(Fill(current, tuple(c.bias for c, _ in incoming_here if c.bias is not None and bias_initialises_current(c))))
            for connection, link in incoming_here:
                draft.connection_ops[connection.id] = connection_op(connection, link, current)
                operations.append(draft.connection_ops[connection.id])
        operations.append(step)
    return operations


def _add_limits(draft: Draft, forward: list[ForwardOp]) -> None:
    """Add the limit parameters of sources whose spikes may be dropped."""
    if draft.limit is None:
        return
    kinds = {name: buffer.kind for name, buffer in draft.buffers.items()}
    labels = {buffer: node for (node, _), buffer in draft.sources.items()}
    for source in spike_sources(tuple(forward), kinds):
        capacity = draft.limit.of(labels[source], size(draft.buffers[source].shape))
        for name, value in ({} if capacity is None else limit_values(draft.limit, source, capacity)).items():
            draft.parameter(name, name, value, learnable=False)
        if capacity is not None and draft.limit.policy == "random":
            # A random choice differs from step to step, even for a static input.
            draft.inputs = [replace(i, varies=True) if i.static and source == f"{i.id}_in" else i for i in draft.inputs]


def _connect(draft: Draft, link: PopulationLink, port: int) -> ConnectionInfo:
    id_, kind = f"c{len(draft.connections)}", kind_of(link)
    source = draft.sources[link.source, link.source_port]
    learnable = link.learnable and link not in draft.frozen
    weight, bias = weights_of(link)
    info = ConnectionInfo(
        id=id_,
        label=link.label,
        source=draft.ids[link.source],
        source_buffer=source,
        target=draft.ids[link.target],
        port=port,
        kind=kind,
        delay=link.delay,
        weight=None if weight is None else draft.parameter(f"{id_}_w", f"{link.label}.weight", weight, learnable),
        bias=None if bias is None else draft.parameter(f"{id_}_b", f"{link.label}.bias", bias, learnable),
        event_driven=kind in ("dense", "sparse", "convolution") and draft.buffers[source].kind == "spikes",
    )
    draft.connections.append(info)
    return info


def _outputs(draft: Draft) -> tuple[list[OutputInfo], list[Record]]:
    """Return the outputs and the operations that record them, and add the buffers of the records."""
    outputs: list[OutputInfo] = []
    records: list[Record] = []
    for name, operation in draft.graph.of_type(Output):
        id_, port = f"y{len(outputs)}", draft.ports[name, "in"]
        source, source_port, delay = recorded(draft.graph, name)
        value = BufferValue(draft.sources[source, source_port], delay)
        record = draft.buffer(f"{id_}_record", "record", size(port.shape), "sequence", port.kind)
        window = (operation.start, operation.stop)
        outputs.append(OutputInfo(id_, name, value, record, port.shape, operation.readout, operation.layout, window))
        records.append(Record(id_, value, record))
    return outputs, records


def _state_inputs(draft: Draft) -> Mapping[str, StateRef]:
    kernels = {info.label: info.kernel for info in draft.populations}
    states = {}
    for label, ref in draft.graph.state_inputs.items():
        canonical = {kernels[ref.node].labels[s]: s for s in kernels[ref.node].states}
        states[label] = StateRef(draft.ids[ref.node], canonical.get(ref.name, ref.name))
    return states
