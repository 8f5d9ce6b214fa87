"""Write a recovered step as a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx
import numpy as np

from snnc.compiler.graph import Add, Array, Concat, Flatten, Graph, Input, Layout, Linear, Output, Population, Shape, StateRef
from snnc.compiler.neuron import NeuronModel
from snnc.frontends.onnx.equations import draft
from snnc.frontends.onnx.errors import NotYetError, ReadoutError, StepGraphError
from snnc.frontends.onnx.grouping import Grouping
from snnc.frontends.onnx.initial import Start
from snnc.frontends.onnx.naming import Named, name
from snnc.frontends.onnx.recognise import recognise
from snnc.frontends.onnx.roll import Const, InputRef, Operand, Ref
from snnc.frontends.onnx.states import States
from snnc.frontends.onnx.step import Step


@dataclass(frozen=True)
class Place:
    """Where a value leaves the graph's nodes."""

    node: str
    port: str = ""


@dataclass(eq=False)
class Plan:
    """Everything that :func:`build` reads."""

    title: str
    step: Step
    groups: Grouping
    states: Mapping[int, States]
    start: Start
    inputs: Mapping[str, Shape]
    steps: int | None
    names: set[str]
    visible: set[int]


class _Builder:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.step = plan.step
        self.graph = Graph(plan.title, plan.steps)
        self.places: dict[int, Place] = {}
        self.named: dict[int, Named] = {}
        self.pending: list[tuple[Operand, str, str]] = []
        self.count: dict[str, int] = {}

    def fresh(self, base: str) -> str:
        """Return a new node name."""
        while True:
            self.count[base] = self.count.get(base, 0) + 1
            name = f"{base}_{self.count[base]}"
            if name not in self.plan.names and name not in self.graph.nx:
                return name

    def input(self, ref: InputRef) -> Place:
        """Return where an input leaves, adding it on its first use."""
        step, full = self.step, self.plan.inputs[ref.name]
        axis, batch = step.axes.get(ref.name), step.input_batch(ref)
        shape = tuple(d for k, d in enumerate(full) if k not in (axis, batch))
        kept = shape or (1,)
        flat = step.operand_sample(ref)
        if ref.name not in self.graph.nx:
            self.graph.add(ref.name, Input(kept, layout=Layout(axis, batch)))
            if kept != flat and len(flat) == 1:
                self.graph.add(f"{ref.name}_flat", Flatten())
                self.graph.connect(ref.name, f"{ref.name}_flat")
            elif kept != flat:
                raise NotYetError(f"the input '{ref.name}' of shape {list(full)} is reshaped inside a step; that is not read yet.")
        return Place(ref.name if kept == flat else f"{ref.name}_flat")

    def read(self, operand: Operand, target: str, port: str = "") -> None:
        """Connect an operand to a port, now or when its source is there."""
        self.pending.append((operand, target, port))

    def connect(self) -> None:
        """Make all edges."""
        for operand, target, port in self.pending:
            place = self.place(operand)
            delay = operand.delay if not isinstance(operand, Const) else 0
            self.graph.connect(place.node, target, source_port=place.port, target_port=port, delay=delay)

    def place(self, operand: Operand) -> Place:
        """Return where an operand leaves."""
        match operand:
            case InputRef():
                return self.input(operand)
            case Ref(cls):
                return self.places[cls]
        raise StepGraphError("a layer reads a constant instead of a value of the network; fold it into the layer's bias.")

    def layer(self, cls: int) -> None:
        """Add a matrix product, sum, concatenation or flattening."""
        made, operands = self.step.classes[cls], self.step.operands(cls)
        if made.op == "linear":
            if cls in self.plan.groups.bias.values():
                bias_class = next(b for b, p in self.plan.groups.bias.items() if p == cls)
                constant = next(o for o in self.step.operands(bias_class) if isinstance(o, Const))
                bias = np.broadcast_to(self.step.constant(constant.value, bias_class), self.step.samples[cls])
                self.linear(cls, operands, bias)
            else:
                self.linear(cls, operands, operands[2].value if len(operands) > 2 and isinstance(operands[2], Const) else None)
        elif made.op == "concat":
            self.concat(cls, operands)
        elif made.op == "add":
            self.places[cls] = Place(self.graph.add(self.fresh("sum"), Add()))
            for operand in operands:
                self.read(operand, self.places[cls].node)
        else:
            self.places[cls] = Place(self.graph.add(self.fresh("flat"), Flatten()))
            self.read(operands[0], self.places[cls].node)

    def linear(self, cls: int, operands: tuple[Operand, ...], bias: Array | None) -> None:
        """Add a matrix product."""
        weight = operands[1]
        if not isinstance(weight, Const) or len(self.step.operand_sample(operands[0])) != 1:
            raise NotYetError(f"a matrix product over the last axis of {list(self.step.operand_sample(operands[0]))} is not read yet.")
        if self.step.operand_sample(operands[0]) != weight.value.shape[1:]:
            raise NotYetError(f"a matrix product of {list(weight.value.shape)} inside a larger value is not read yet.")
        value = np.ascontiguousarray(weight.value, np.float32)
        self.places[cls] = Place(self.graph.add(self.fresh("linear"), Linear(value, None if bias is None else np.array(bias, np.float32))))
        self.read(operands[0], self.places[cls].node)

    def concat(self, cls: int, operands: tuple[Operand, ...]) -> None:
        """Add a concatenation."""
        if any(isinstance(o, Const) or len(self.step.operand_sample(o)) != 1 for o in operands) or len(self.step.samples[cls]) != 1:
            raise NotYetError("a Concat of constants or of values with several axes is not read yet.")
        self.places[cls] = Place(self.graph.add(self.fresh("concat"), Concat(0)))
        for k, operand in enumerate(operands):
            self.read(operand, self.places[cls].node, str(k))

    def population(self, group: int, visible: set[int]) -> None:
        """Add a population."""
        step, states = self.step, self.plan.states[group]
        members = self.plan.groups.members(group)
        shapes = {step.samples[c] for c in members}
        made = draft(step, members, states, visible)
        shapes |= {step.operand_sample(p) for p in made.ports}
        if len(shapes) != 1:
            raise NotYetError(f"elementwise operations that mix the shapes {sorted(map(list, shapes))} are not read yet.")
        named = name(made, states, visible)
        outputs = tuple(dict.fromkeys(named.outputs[c] for c in sorted(visible, key=lambda c: _rank(named.outputs[c]))))
        parameters = {k: np.asarray(v, np.float32) for k, v in named.parameters.items()}
        initial = self.initial(states, named)
        defaults = {k: (1.0 if k == "threshold" else 0.0) for k in parameters}
        model = NeuronModel("custom", named.ports, dict.fromkeys(named.deep.values(), 0.0), defaults, named.lines, outputs)
        facts = recognise(model, parameters)
        if facts is not None:
            model = NeuronModel(facts.name, model.inputs, model.states, model.parameters, model.equations, model.outputs)
        node = self.graph.add(self.fresh("neurons"), Population(model, shapes.pop(), parameters, initial=initial))
        self.named[group] = named
        self.places.update({c: Place(node, port) for c, port in named.outputs.items()})
        for operand, port in zip(made.ports, named.ports, strict=True):
            self.read(operand, node, port)

    def initial(self, states: States, named: Named) -> dict[str, Array]:
        """Return the initial states that are not zero."""
        found: dict[str, Array] = {}
        for (cls, k), label in named.deep.items():
            value = self.plan.start.values.get((cls, -k))
            if value is not None and value.any():
                found[label] = np.asarray(self.step.constant(value, cls), np.float32)
        return found


def _rank(port: str) -> tuple[bool, bool, str]:
    return (not port.startswith("s"), not port.startswith("y"), port)


def build(plan: Plan) -> Graph:
    """Return the graph of a recovered step."""
    builder = _Builder(plan)
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
    return builder.graph


def visible_classes(step: Step, groups: Grouping) -> set[int]:
    """Return the classes of populations that other nodes or results read."""
    found: set[int] = set()
    for cls in groups.order:
        own = groups.group.get(cls)
        for operand in step.operands(cls):
            if isinstance(operand, Ref) and groups.group.get(operand.cls) is not None and groups.group.get(operand.cls) != own:
                found.add(operand.cls)
    for result in step.results:
        value = step.see(result.value)
        if isinstance(value, Ref) and value.cls in groups.group:
            found.add(value.cls)
    for group in groups.groups:
        if not any(groups.group[c] == group for c in found):
            found.add(groups.members(group)[-1])
    return found


def _output(builder: _Builder, name: str) -> None:
    step = builder.step
    result = next(r for r in step.results if r.name == name)
    if isinstance(result.value, Const):
        raise ReadoutError(f"the output '{name}' is constant; it does not depend on the inputs.")
    if name in builder.graph.nx:
        raise ReadoutError(f"the output '{name}' has the name of an input; rename one of them.")
    seen = step.see(result.value)
    batch = step.batch[result.value.cls] if isinstance(result.value, Ref) else step.input_batch(result.value)
    if batch is not None and isinstance(result.value, InputRef):
        batch = 0
    if batch is not None and result.time_axis is not None and batch >= result.time_axis:
        batch += 1
    if batch is not None and batch >= result.rank:
        batch = result.rank - 1
    builder.graph.add(name, Output(result.readout, Layout(result.time_axis, batch)))
    builder.read(seen, name)


def _check_cycles(graph: Graph) -> None:
    same: nx.DiGraph[str] = nx.DiGraph()
    same.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    if not nx.is_directed_acyclic_graph(same):
        cycle = " -> ".join(e[0] for e in nx.find_cycle(same))
        raise StepGraphError(f"the recovered network has a cycle without delay ({cycle}); snnc cannot order its populations.")


def _state_inputs(builder: _Builder) -> None:
    plan = builder.plan
    for given, cls in plan.start.inputs.items():
        group = plan.groups.group.get(cls)
        place = builder.places.get(cls)
        if group is not None and cls in builder.named[group].states:
            node = next(p.node for c, p in builder.places.items() if plan.groups.group.get(c) == group)
            builder.graph.state_inputs[given] = StateRef(node, builder.named[group].states[cls])
        elif place is not None:
            builder.graph.state_inputs[given] = StateRef(place.node, place.port)
