"""Build a graph from a recovered step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx
import numpy as np

from snnc.compiler.ir.graph import (
    Add,
    Array,
    Concat,
    Conv,
    FileLayout,
    Flatten,
    Graph,
    Input,
    Linear,
    Operation,
    Output,
    Pool,
    Population,
    Reshape,
    Shape,
    Sparse,
    StateRef,
)
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.common.recognise import recognise
from snnc.frontends.onnx.errors import NotYetError, ReadoutError, StepGraphError
from snnc.frontends.onnx.proof.traces import Trace, TracedGraph, traces_of
from snnc.frontends.onnx.recovery.detaching import Detach
from snnc.frontends.onnx.recovery.equations import draft
from snnc.frontends.onnx.recovery.grouping import Grouping, channel_bias
from snnc.frontends.onnx.recovery.initial import Start
from snnc.frontends.onnx.recovery.layers import layer_of, scale_of, selection
from snnc.frontends.onnx.recovery.naming import NamedEquations, name
from snnc.frontends.onnx.recovery.states import States
from snnc.frontends.onnx.reroll.roll import Const, InputRef, Operand, Ref
from snnc.frontends.onnx.reroll.step import RecoveredStep, Result


@dataclass(frozen=True)
class OutputPlace:
    """A source port of the graph, and its shape."""

    node: str
    port: str = ""
    shape: Shape = ()


@dataclass(frozen=True)
class FileFacts:
    """Properties of a file that its graph adopts.

    Attributes
    ----------
    title
        Name of the graph.
    inputs
        Shape of each input, with numbers for dynamic sizes.
    steps
        Number of time steps; None if open.
    names
        Names of inputs and outputs, which other nodes of the graph must not use.
    detach
        Rule for where gradients stop; None if the file carries marks.
    """

    title: str
    inputs: Mapping[str, Shape]
    steps: int | None
    names: set[str]
    detach: Detach | None


@dataclass(frozen=True, eq=False)
class BuildPlan:
    """Input of :func:`build`: a step, with its populations, states and initial states."""

    file: FileFacts
    step: RecoveredStep
    groups: Grouping
    states: Mapping[int, States]
    start: Start
    visible: set[int]
    """Classes that are outputs of populations; see :func:`visible_classes`."""


class _GraphBuilder:
    """A graph under construction, and the port that provides the value of each class.

    Classes are those of the step (:class:`~snnc.frontends.onnx.reroll.roll.StepClass`).

    Attributes
    ----------
    plan, step
        The plan, and its step.
    graph
        The graph.
    places
        Port by class.
    named
        Equations by group.
    traces
        States and outputs of the populations.
    pending
        Requested edges: operand, target, target port, and the shape that the target reads (None: any).
    shaped
        Node that reshapes the values of a port, by port, delay and shape.
    count
        Number of the last name from :meth:`fresh`, by base.
    """

    def __init__(self, plan: BuildPlan) -> None:
        self.plan = plan
        self.step = plan.step
        self.graph = Graph(plan.file.title, plan.file.steps)
        self.places: dict[int, OutputPlace] = {}
        self.named: dict[int, NamedEquations] = {}
        self.traces: list[Trace] = []
        self.pending: list[tuple[Operand, str, str, Shape | None]] = []
        self.shaped: dict[tuple[OutputPlace, int, Shape], str] = {}
        self.count: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        """Return an unused node name."""
        while True:
            self.count[base] = self.count.get(base, 0) + 1
            name = f"{base}_{self.count[base]}"
            if name not in self.plan.file.names and name not in self.graph.nx:
                return name

    def input(self, ref: InputRef) -> OutputPlace:
        """Return the port of an input, which is added on first use."""
        step, full = self.step, self.plan.file.inputs[ref.name]
        axis, batch = step.axes.get(ref.name), step.input_batch(ref)
        shape = tuple(d for k, d in enumerate(full) if k not in (axis, batch)) or (1,)
        if ref.name not in self.graph.nx:
            self.graph.add(ref.name, Input(shape, layout=FileLayout(axis, batch)))
        return OutputPlace(ref.name, "", shape)

    def read(self, operand: Operand, target: str, port: str = "", shape: Shape | None = None) -> None:
        """Request an edge from an operand to a port, in `shape`; :meth:`connect` adds it."""
        self.pending.append((operand, target, port, shape))

    def connect(self) -> None:
        """Add all requested edges; if a reader needs another shape, insert a Reshape."""
        for operand, target, port, shape in self.pending:
            place = self.place(operand)
            delay = operand.delay if not isinstance(operand, Const) else 0
            if shape is None or shape == place.shape:
                self.graph.connect(place.node, target, source_port=place.port, target_port=port, delay=delay)
                continue
            key = (place, delay, shape)
            if key not in self.shaped:
                flat = len(shape) == 1
                self.shaped[key] = self.graph.add(self.fresh("flat" if flat else "reshape"), Flatten() if flat else Reshape(shape))
                self.graph.connect(place.node, self.shaped[key], source_port=place.port, delay=delay)
            self.graph.connect(self.shaped[key], target, target_port=port)

    def place(self, operand: Operand) -> OutputPlace:
        """Return the port that provides an operand."""
        match operand:
            case InputRef():
                return self.input(operand)
            case Ref(cls):
                return self.places[cls]
        raise StepGraphError("a layer reads a constant instead of a value of the network; fold it into the layer's bias.")

    def layer(self, cls: int) -> None:
        """Add a layer between populations, or a reshape."""
        fused = next((b for b, p in self.plan.groups.bias.items() if p == cls), None)
        bias = None
        if fused is not None:
            constant = next(o for o in self.step.operands(fused) if isinstance(o, Const))
            bias = channel_bias(self.step, cls, constant.value)
        if self.step.classes[cls].op == "gather" and len(self.step.operands(cls)) > 1:
            self.joined(cls)
            return
        base, operation, operands, read_shape = layer_of(self.step, cls, bias)
        self.places[cls] = OutputPlace(self.graph.add(self.fresh(base), operation), "", _shape_of(self.step, cls, operation))
        concat = base == "concat"
        for k, operand in enumerate(operands):
            shape = self.step.full(operand) if concat else read_shape
            self.read(self.step.through_layout(operand), self.places[cls].node, str(k) if concat else "", shape)

    def joined(self, cls: int) -> None:
        """Add a gather of several sources as their concatenation and a selection."""
        step = self.step
        gather, sources = step.classes[cls].attrs[0], step.operands(cls)
        sizes = [math.prod(step.full(o)) for o in sources]
        node = self.graph.add(self.fresh("concat"), Concat(0))
        for k, operand in enumerate(sources):
            self.read(operand, node, str(k), (sizes[k],))
        if not (gather.plain and gather.index.size == sum(sizes)):
            joined, node = node, self.graph.add(self.fresh("pick"), selection(gather, sum(sizes)))
            self.graph.connect(joined, node)
        self.places[cls] = OutputPlace(node, "", (gather.index.size,))

    def population(self, group: int, visible: set[int]) -> None:
        """Add the population of a group of classes."""
        step, states = self.step, self.plan.states[group]
        members = self.plan.groups.members(group)
        shapes = {step.samples[c] for c in members}
        equations = draft(step, members, states, visible, self.plan.file.detach)
        shapes |= {step.operand_sample(p) for p in equations.ports}
        if len(shapes) != 1:
            raise NotYetError(f"elementwise operations that mix the shapes {sorted(map(list, shapes))} are not supported yet.")
        named = name(equations, states, visible)
        scale = scale_of(named, step.graph_shape(members[-1]))
        if scale is not None:
            place = OutputPlace(self.graph.add(self.fresh("scale"), scale), "", step.graph_shape(members[-1]))
            self.places.update(dict.fromkeys(named.outputs, place))
            self.read(equations.ports[0], place.node, "", place.shape)
            return
        outputs = tuple(dict.fromkeys(named.outputs[c] for c in sorted(visible, key=lambda c: _rank(named.outputs[c]))))
        parameters = {k: np.asarray(v, np.float32) for k, v in named.parameters.items()}
        initial = self.initial(states, named)
        defaults = {k: (1.0 if k == "threshold" else 0.0) for k in parameters}
        model = NeuronModel("custom", named.ports, dict.fromkeys(named.deep.values(), 0.0), defaults, named.lines, outputs)
        if not equations.ports:
            raise StepGraphError("snnc does not support neurons that only read their own state; every population needs an input.")
        facts = recognise(model, parameters)
        if facts is not None:
            model = NeuronModel(facts.name, model.inputs, model.states, model.parameters, model.equations, model.outputs)
        shape = step.graph_shape(members[-1])
        parameters, initial = ({k: v.reshape(shape) if v.ndim else v for k, v in values.items()} for values in (parameters, initial))
        population = Population(model, shape, parameters, named.learnable, initial=initial)
        node = self.graph.add(self.fresh("neurons"), population)
        self.traces.extend(traces_of(step, named, node, population))
        self.named[group] = named
        self.places.update({c: OutputPlace(node, port, shape) for c, port in named.outputs.items()})
        for operand, port in zip(equations.ports, named.ports, strict=True):
            self.read(operand, node, port, shape)

    def initial(self, states: States, named: NamedEquations) -> dict[str, Array]:
        """Return the initial states that are not 0."""
        found: dict[str, Array] = {}
        for (cls, k), label in named.deep.items():
            value = self.plan.start.values.get((cls, -k))
            if value is not None and value.any():
                found[label] = np.asarray(self.step.constant(value, cls), np.float32)
        return found


def _rank(port: str) -> tuple[bool, bool, str]:
    """Return the sort key of an output: spikes (s), other outputs (y), then states."""
    return (not port.startswith("s"), not port.startswith("y"), port)


def build(plan: BuildPlan) -> TracedGraph:
    """Return the graph of a recovered step, and the nodes of the file that contain its populations' values."""
    builder = _GraphBuilder(plan)
    step, groups = plan.step, plan.groups
    done: set[int] = set()
    for cls in groups.order:
        for operand in step.operands(cls):
            if isinstance(operand, InputRef):
                builder.input(operand)
    for cls in groups.order:
        group = groups.group.get(cls)
        if group is not None:
            if group not in done:
                done.add(group)
                builder.population(group, {c for c in plan.visible if groups.group.get(c) == group})
        elif cls in groups.bias:
            builder.places[cls] = builder.places[groups.bias[cls]]
        else:
            builder.layer(cls)
    for result in step.results:
        _output(builder, result.name)
    builder.connect()
    _check_cycles(builder.graph)
    _state_inputs(builder)
    return TracedGraph(builder.graph, tuple(builder.traces))


def visible_classes(step: RecoveredStep, groups: Grouping) -> set[int]:
    """Return the classes that are outputs of populations.

    These are the classes that other groups or results read, and the last class of each group without such classes.
    """
    found: set[int] = set()
    for cls in groups.order:
        own_group = groups.group.get(cls)
        for operand in step.operands(cls):
            if isinstance(operand, Ref) and groups.group.get(operand.cls) is not None and groups.group.get(operand.cls) != own_group:
                found.add(operand.cls)
    for result in step.results:
        value = step.through_layout(result.value)
        if isinstance(value, Ref) and value.cls in groups.group:
            found.add(value.cls)
    for group in groups.groups:
        if not any(groups.group[c] == group for c in found):
            found.add(groups.members(group)[-1])
    return found


def _output(builder: _GraphBuilder, name: str) -> None:
    step = builder.step
    result = next(r for r in step.results if r.name == name)
    if isinstance(result.value, Const):
        raise ReadoutError(f"the output '{name}' is constant; it does not depend on the inputs.")
    if name in builder.graph.nx:
        raise ReadoutError(f"the output '{name}' has the name of an input; rename one of them.")
    batch = _output_batch(step, result)
    shape = tuple(d for k, d in enumerate(result.shape) if k != batch)
    if batch is not None and result.time_axis is not None and batch >= result.time_axis:
        batch += 1
    builder.graph.add(name, Output(result.readout, FileLayout(result.time_axis, batch), result.start, result.stop))
    builder.read(step.through_layout(result.value), name, "", shape)


def _output_batch(step: RecoveredStep, result: Result) -> int | None:
    """Return the batch axis of an output, not counting the time axis."""
    value = result.value
    if isinstance(value, Ref):
        shape, batch = step.classes[value.cls].shape, step.batch[value.cls]
    else:
        shape, batch = (value.shape, step.input_batch(value)) if isinstance(value, InputRef) else ((), None)
    if batch is None:
        return None
    outer = math.prod(shape[:batch])
    fits = [k for k, d in enumerate(result.shape) if d == shape[batch] and math.prod(result.shape[:k]) == outer]
    if not fits:
        raise ReadoutError(f"the output '{result.name}' of shape {list(result.shape)} per step has no batch axis of {shape[batch]}.")
    return batch if batch in fits else fits[0]


def _shape_of(step: RecoveredStep, cls: int, operation: Operation) -> Shape:
    if isinstance(operation, Conv | Pool):
        return step.image(Ref(cls))
    if isinstance(operation, Sparse):
        return operation.shape[:1]
    return step.graph_shape(cls) if isinstance(operation, Linear | Flatten | Reshape | Add) else step.full(Ref(cls))


def _check_cycles(graph: Graph) -> None:
    same: nx.DiGraph[str] = nx.DiGraph()
    same.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    if not nx.is_directed_acyclic_graph(same):
        cycle = " -> ".join(e[0] for e in nx.find_cycle(same))
        raise StepGraphError(f"the recovered network has a cycle without delay ({cycle}); snnc cannot order its populations.")


def _state_inputs(builder: _GraphBuilder) -> None:
    """Connect inputs of the file that provide initial states to their states or outputs."""
    plan = builder.plan
    for given, cls in plan.start.inputs.items():
        group = plan.groups.group.get(cls)
        place = builder.places.get(cls)
        if group is not None and cls in builder.named[group].states:
            node = next(p.node for c, p in builder.places.items() if plan.groups.group.get(c) == group)
            builder.graph.state_inputs[given] = StateRef(node, builder.named[group].states[cls])
        elif place is not None:
            builder.graph.state_inputs[given] = StateRef(place.node, place.port)
