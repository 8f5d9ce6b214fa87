"""Build a graph from a recovered step, whose populations, states and initial states have been chosen.

A class is a value of the step (:class:`~snnc.frontends.onnx.reroll.roll.StepClass`); a group is the classes of one population.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import networkx as nx
import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Array, Graph, Operation, Population, Shape, StateRef
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.common.recognise import recognise
from snnc.frontends.onnx.errors import NotYetError, ReadoutError, StepGraphError
from snnc.frontends.onnx.proof.traces import Trace, traces_of
from snnc.frontends.onnx.recovery.detaching import Detach
from snnc.frontends.onnx.recovery.equations import draft
from snnc.frontends.onnx.recovery.grouping import Grouping, channel_bias
from snnc.frontends.onnx.recovery.initial import Start
from snnc.frontends.onnx.recovery.layers import layer_of, reshape_to, scale_of, selection
from snnc.frontends.onnx.recovery.naming import NamedEquations, name_equations
from snnc.frontends.onnx.recovery.states import States
from snnc.frontends.onnx.reroll.roll import Const, InputRef, Operand, Ref
from snnc.frontends.onnx.reroll.step import RecoveredStep, Result


@dataclass(frozen=True)
class _SourcePort:
    """A source port of the graph, and the shape of its values."""

    node: str
    port: str = ""
    shape: Shape = ()


@dataclass(frozen=True)
class FileFacts:
    """Properties of a file that its graph adopts."""

    title: str
    inputs: Mapping[str, Shape]
    """Shape of each input, with numbers for dynamic sizes."""
    steps: int | None  # number of time steps; None if open
    names: set[str]  # names of inputs and outputs, which no other node of the graph may have
    detach: Detach | None  # rule for where gradients stop; None if the file marks where they stop


@dataclass(eq=False)
class GraphBuilder:
    """Builds the graph of a step."""

    file: FileFacts
    step: RecoveredStep
    groups: Grouping
    states: Mapping[int, States]
    start: Start
    visible: set[int]
    """Classes that are outputs of populations; see :func:`visible_classes`."""
    places: dict[int, _SourcePort] = field(default_factory=dict)  # port that provides the value of each class
    named: dict[int, NamedEquations] = field(default_factory=dict)  # equations by group
    traces: list[Trace] = field(default_factory=list)
    pending: list[tuple[Operand, str, str, Shape | None]] = field(default_factory=list)
    """Requested edges: operand, target, target port, and the shape that the target reads (None: any)."""
    shaped: dict[tuple[_SourcePort, int, Shape], str] = field(default_factory=dict)
    """Node that reshapes the values of a port, by port, delay and shape."""
    count: Counter[str] = field(default_factory=Counter)  # number of the last name from :meth:`fresh`, by base

    def __post_init__(self) -> None:
        self.graph = Graph(self.file.title, self.file.steps)

    def build(self) -> tuple[Graph, tuple[Trace, ...]]:
        """Return the graph, and the values in the file that its populations must equal."""
        step, groups, done = self.step, self.groups, set[int]()
        for cls in groups.order:
            for operand in step.operands(cls):
                if isinstance(operand, InputRef):
                    self.input(operand)
        for cls in groups.order:
            group = groups.group.get(cls)
            if group is not None:
                if group not in done:
                    done.add(group)
                    self.population(group, {c for c in self.visible if groups.group.get(c) == group})
            elif cls in groups.bias:
                self.places[cls] = self.places[groups.bias[cls]]
            else:
                self.layer(cls)
        for result in step.results:
            self.output(result)
        self.connect()
        _check_cycles(self.graph)
        self.state_inputs()
        return self.graph, tuple(self.traces)

    def fresh(self, base: str) -> str:
        """Return an unused node name."""
        while True:
            self.count[base] += 1
            name = f"{base}_{self.count[base]}"
            if name not in self.file.names and name not in self.graph.nx:
                return name

    def input(self, ref: InputRef) -> _SourcePort:
        """Return the port of an input, which is added on first use."""
        step, full = self.step, self.file.inputs[ref.name]
        axis, batch = step.axes.get(ref.name), step.input_batch(ref)
        shape = tuple(d for k, d in enumerate(full) if k not in (axis, batch)) or (1,)
        if ref.name not in self.graph.nx:
            self.graph.add(ref.name, ir.Input(shape, layout=ir.FileLayout(axis, batch)))
        return _SourcePort(ref.name, "", shape)

    def read(self, operand: Operand, target: str, port: str = "", shape: Shape | None = None) -> None:
        """Request an edge from an operand to a port, in `shape`; :meth:`connect` adds it."""
        self.pending.append((operand, target, port, shape))

    def connect(self) -> None:
        """Add all requested edges, with a Reshape if the target reads another shape."""
        for operand, target, port, shape in self.pending:
            place = self.place(operand)
            delay = operand.delay if not isinstance(operand, Const) else 0
            if shape is None or shape == place.shape:
                self.graph.connect(place.node, target, source_port=place.port, target_port=port, delay=delay)
                continue
            key = (place, delay, shape)
            if key not in self.shaped:
                base, operation = reshape_to(shape)
                self.shaped[key] = self.graph.add(self.fresh(base), operation)
                self.graph.connect(place.node, self.shaped[key], source_port=place.port, delay=delay)
            self.graph.connect(self.shaped[key], target, target_port=port)

    def place(self, operand: Operand) -> _SourcePort:
        """Return the port that provides an operand."""
        match operand:
            case InputRef():
                return self.input(operand)
            case Ref(cls):
                return self.places[cls]
        raise StepGraphError("a layer reads a constant instead of a value of the network; fold it into the layer's bias.")

    def layer(self, cls: int) -> None:
        """Add an operation between populations, such as a dense layer, a pooling or a reshape."""
        if self.step.classes[cls].op == "gather" and len(self.step.operands(cls)) > 1:
            self.joined(cls)
            return
        added = [o.value for b, p in self.groups.bias.items() if p == cls for o in self.step.operands(b) if isinstance(o, Const)]
        bias = channel_bias(self.step, cls, added[0]) if added else None
        base, operation, operands, read_shape = layer_of(self.step, cls, bias)
        self.places[cls] = _SourcePort(self.graph.add(self.fresh(base), operation), "", _shape_of(self.step, cls, operation))
        concat = base == "concat"
        for k, operand in enumerate(operands):
            shape = self.step.full_shape(operand) if concat else read_shape
            self.read(self.step.through_layout(operand), self.places[cls].node, str(k) if concat else "", shape)

    def joined(self, cls: int) -> None:
        """Add a gather from several sources as their concatenation and a selection from it."""
        step = self.step
        gather, sources = step.classes[cls].attrs[0], step.operands(cls)
        sizes = [math.prod(step.full_shape(o)) for o in sources]
        node = self.graph.add(self.fresh("concat"), ir.Concat(0))
        for k, operand in enumerate(sources):
            self.read(operand, node, str(k), (sizes[k],))
        if not (gather.plain and gather.index.size == sum(sizes)):
            joined, node = node, self.graph.add(self.fresh("pick"), selection(gather, sum(sizes)))
            self.graph.connect(joined, node)
        self.places[cls] = _SourcePort(node, "", (gather.index.size,))

    def population(self, group: int, visible: set[int]) -> None:
        """Add the population of a group; a group that only computes ``a*x + b`` becomes a Scale instead."""
        step, states = self.step, self.states[group]
        members = self.groups.members(group)
        shapes = {step.samples[c] for c in members}
        equations = draft(step, members, states, visible, self.file.detach)
        shapes |= {step.operand_sample(p) for p in equations.ports}
        if len(shapes) != 1:
            raise NotYetError(f"elementwise operations that mix the shapes {sorted(map(list, shapes))} are not supported yet.")
        named = name_equations(equations, states, visible)
        shape = step.graph_shape(members[-1])
        if scale := scale_of(named, shape):
            place = _SourcePort(self.graph.add(self.fresh("scale"), scale), "", shape)
            self.places.update(dict.fromkeys(named.outputs, place))
            self.read(equations.ports[0], place.node, "", place.shape)
            return
        if not equations.ports:
            raise StepGraphError("snnc does not support neurons that only read their own state; every population needs an input.")
        outputs = tuple(sorted({named.outputs[c] for c in visible}, key=_rank))
        parameters = {k: np.asarray(v, np.float32) for k, v in named.parameters.items()}
        defaults = {k: (1.0 if k == "threshold" else 0.0) for k in parameters}
        model = NeuronModel("custom", named.ports, dict.fromkeys(named.past.values(), 0.0), defaults, named.lines, outputs)
        if facts := recognise(model, parameters):
            model = replace(model, name=facts.name)
        arrays = (parameters, self.initial(states, named))
        parameters, initial = ({k: v.reshape(shape) if v.ndim else v for k, v in values.items()} for values in arrays)
        population = Population(model, shape, parameters, named.learnable, initial=initial)
        node = self.graph.add(self.fresh("neurons"), population)
        self.traces.extend(traces_of(step, named, node, population))
        self.named[group] = named
        self.places.update({c: _SourcePort(node, port, shape) for c, port in named.outputs.items()})
        for operand, port in zip(equations.ports, named.ports, strict=True):
            self.read(operand, node, port, shape)

    def initial(self, states: States, named: NamedEquations) -> dict[str, Array]:
        """Return the initial states that are not 0, by name."""
        initial: dict[str, Array] = {}
        for (cls, delay), label in named.past.items():
            value = self.start.values.get((cls, -delay))
            if value is not None and value.any():
                initial[label] = np.asarray(self.step.constant(value, cls), np.float32)
        return initial

    def output(self, result: Result) -> None:
        """Add an output of the file."""
        step, name = self.step, result.name
        if isinstance(result.value, Const):
            raise ReadoutError(f"the output '{name}' is constant; it does not depend on the inputs.")
        if name in self.graph.nx:
            raise ReadoutError(f"the output '{name}' has the name of an input; rename one of them.")
        batch = _output_batch(step, result)
        shape = tuple(d for k, d in enumerate(result.shape) if k != batch)
        if batch is not None and result.time_axis is not None and batch >= result.time_axis:
            batch += 1
        self.graph.add(name, ir.Output(result.readout, ir.FileLayout(result.time_axis, batch), result.start, result.stop))
        self.read(step.through_layout(result.value), name, "", shape)

    def state_inputs(self) -> None:
        """Connect inputs of the file that provide initial states to their states or outputs."""
        for name, cls in self.start.inputs.items():
            group, place = self.groups.group.get(cls), self.places.get(cls)
            if group is not None and cls in self.named[group].states:
                node = next(p.node for c, p in self.places.items() if self.groups.group.get(c) == group)
                self.graph.state_inputs[name] = StateRef(node, self.named[group].states[cls])
            elif place is not None:
                self.graph.state_inputs[name] = StateRef(place.node, place.port)


def _rank(port: str) -> tuple[bool, bool, str]:
    """Return the sort key of an output: spikes (s), other outputs (y), then states."""
    return (not port.startswith("s"), not port.startswith("y"), port)


def visible_classes(step: RecoveredStep, groups: Grouping) -> set[int]:
    """Return the classes that are outputs of populations: those that other groups or results read, else the last of the group."""
    reads = [(o, groups.group.get(c)) for c in groups.order for o in step.operands(c)]
    reads += [(step.through_layout(r.value), None) for r in step.results]
    visible = {o.cls for o, reader in reads if isinstance(o, Ref) and groups.group.get(o.cls) not in (None, reader)}
    with_output = {groups.group[c] for c in visible}
    return visible | {groups.members(group)[-1] for group in groups.groups if group not in with_output}


def _output_batch(step: RecoveredStep, result: Result) -> int | None:
    """Return the batch axis of an output, not counting the time axis."""
    shape, batch = step.shape_and_batch(result.value)
    if batch is None:
        return None
    outer = math.prod(shape[:batch])
    fits = [k for k, d in enumerate(result.shape) if d == shape[batch] and math.prod(result.shape[:k]) == outer]
    if not fits:
        raise ReadoutError(f"the output '{result.name}' of shape {list(result.shape)} per step has no batch axis of {shape[batch]}.")
    return batch if batch in fits else fits[0]


def _shape_of(step: RecoveredStep, cls: int, operation: Operation) -> Shape:
    match operation:
        case ir.Conv() | ir.Pool():
            return step.image(Ref(cls))
        case ir.Sparse():
            return operation.shape[:1]
        case ir.Linear() | ir.Flatten() | ir.Reshape() | ir.Add():
            return step.graph_shape(cls)
    return step.full_shape(Ref(cls))


def _check_cycles(graph: Graph) -> None:
    undelayed: nx.DiGraph[str] = nx.DiGraph()
    undelayed.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    if not nx.is_directed_acyclic_graph(undelayed):
        cycle = " -> ".join(e[0] for e in nx.find_cycle(undelayed))
        raise StepGraphError(f"the recovered network has a cycle without delay ({cycle}); snnc cannot order its populations.")
