"""Write one time step of a graph as the body of an ONNX loop, with the graph's states and delay lines as loop variables.

A *delay line* contains the values of a port in previous steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import helper

from snnc.compiler.ir.graph import Array, Edge, Graph, Input, Output, Population, Shape
from snnc.compiler.ir.shapes import PortMap
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.common.execute import step_order
from snnc.frontends.onnx.writer.builder import Builder, StepTensor
from snnc.frontends.onnx.writer.equations import DOMAIN, NeuronFunction, NodePlaces, add_expression
from snnc.frontends.onnx.writer.operations import add_operation


@dataclass(frozen=True)
class _LoopVariable:
    """A value that the loop carries from step to step; `shape` is that of one sample."""

    name: str  # name, in the body, of the value from the previous step
    start: str  # name, in the main graph, of the value before the first step
    result: str  # name, in the body, of the new value
    shape: Shape


def full_shape(main: Builder, batch: str, shape: Shape) -> str:
    """Return the name in the main graph of the vector [B, *shape]; `batch` is the name of the vector [B]."""
    return main.node("Concat", batch, main.constants.integers(shape, "shape"), hint="full_shape", axis=0) if shape else batch


@dataclass
class ScanBody:
    """One time step under construction, with builders of the main graph and of the loop's body."""

    graph: Graph
    ports: PortMap
    main: Builder
    body: Builder
    batch: str
    """Name, in the main graph, of a vector that contains the batch size."""
    starts: dict[tuple[str, str], str]  # name of the input with the value before the first step [B, *shape], by node and its state or port
    inputs: dict[str, StepTensor]  # value of each input at this step
    neurons: list[tuple[NeuronModel, NeuronFunction]]
    """Functions of models whose populations become one node each; the equations of other models are written as operators."""
    values: dict[tuple[str, str], StepTensor] = field(default_factory=dict)  # value at this step of each port, by (node, port)
    carried: list[_LoopVariable] = field(default_factory=list)
    results: dict[str, StepTensor] = field(default_factory=dict)
    """Value that each Output records at this step."""
    lines: dict[tuple[str, str], list[StepTensor]] = field(default_factory=dict)  # values of a port 1, 2, … steps ago, by (node, port)

    def write(self) -> None:
        """Add all nodes of the step; set `values`, `carried`, `results` and `lines`."""
        self.lines.update(self._delay_lines())
        for name in step_order(self.graph):
            operation = self.graph.operation(name)
            match operation:
                case Input():
                    self.values[name, "out"] = self.inputs[name]
                case Population():
                    self._population(name, operation)
                case Output():
                    self.results[name] = self._read(self.graph.incoming(name)[0])
                case _:
                    edges = sorted(self.graph.incoming(name), key=lambda e: (len(e.target_port), e.target_port))
                    operands = [self._read(edge) for edge in edges]
                    self.values[name, "out"] = add_operation(self.body, name, operation, operands, self.ports[name, "out"].shape)
        self._close_lines()

    def _read(self, edge: Edge) -> StepTensor:
        if edge.delay == 0:
            return self.values[edge.source, edge.source_port]
        return self.lines[edge.source, edge.source_port][edge.delay - 1]

    def _delay_lines(self) -> Iterator[tuple[tuple[str, str], list[StepTensor]]]:
        """Yield each port with its loop variables, which contain its values 1, 2, … steps ago."""
        longest: dict[tuple[str, str], int] = {}
        for edge in self.graph.edges:
            key = (edge.source, edge.source_port)
            longest[key] = max(longest.get(key, 0), edge.delay)
        for (name, port), delay in longest.items():
            shape = self.ports[name, port].shape
            yield (name, port), [StepTensor(self.body.names.fresh(f"{name}.{port}.{d}_ago"), shape) for d in range(1, delay + 1)]

    def _close_lines(self) -> None:
        """Shift every delay line by one step, and add its loop variables."""
        for key, line in self.lines.items():
            if line:
                operation = self.graph.operation(key[0])
                first = operation.before(key[1]) if isinstance(operation, Population) else np.zeros(())
                start = self.starts.get(key) or self._expanded(first, line[0].shape, f"{key[0]}.{key[1]}.start")
            source = self.values[key]
            for delayed in line:
                result = self.body.node("Identity", source.name, hint=f"{delayed.name}_next")
                self.carried.append(_LoopVariable(delayed.name, start, result, delayed.shape))
                source = delayed

    def _expanded(self, value: Array, shape: Shape, hint: str, stored_in: tuple[str, str] | None = None) -> str:
        """Repeat `value` for every sample in the main graph, and return the result's name.

        `stored_in`, if given, names the graph's node and its field that contain `value`, for :attr:`Constants.fields`.
        """
        number = self.main.constants.floats(value, "number")
        if stored_in is not None:
            self.main.constants.fields[stored_in] = number
        return self.main.node("Expand", number, full_shape(self.main, self.batch, shape), hint=hint)

    def _population(self, name: str, population: Population) -> None:
        model, shape = population.model, population.shape
        states = {state: StepTensor(self.body.names.fresh(f"{name}.{state}"), shape) for state in model.states}
        scope = {**states, **self._parameters(name, population)}
        for port in model.inputs:
            incoming = [self._read(edge) for edge in self.graph.incoming(name, port)]
            scope[port] = self.body.total(incoming, shape)
        neuron = next((function for known, function in self.neurons if known == model), None)
        values = self._equations(name, population, scope) if neuron is None else self._call(name, neuron, population, scope)
        for target, value in values.items():
            self.values[name, target] = value if value.batched else self._spread(value, shape)
        for state in model.states:
            first = population.before(state)
            start = self.starts.get((name, state)) or self._expanded(first, shape, f"{name}.{state}.start", (name, f"initial.{state}"))
            result = self.body.node("Identity", self.values[name, state].name, hint=f"{name}.{state}_next")
            self.carried.append(_LoopVariable(states[state].name, start, result, shape))

    def _parameters(self, name: str, population: Population) -> dict[str, StepTensor]:
        tensors = {}
        for parameter, default in population.model.parameters.items():
            array = np.asarray(population.parameters.get(parameter, default))
            tensors[parameter] = StepTensor(self.body.constants.field_array(array, name, f"parameters.{parameter}"), array.shape, False)
        return tensors

    def _equations(self, name: str, population: Population, scope: dict[str, StepTensor]) -> dict[str, StepTensor]:
        model = population.model
        for assignment in model.equations:
            hint = f"{name}.{assignment.target}"
            scope[assignment.target] = add_expression(NodePlaces(self.main, self.body), assignment.value, scope, population.shape, hint)
        return {target: scope[target] for target in dict.fromkeys([*model.states, *(a.target for a in model.equations)])}

    def _call(self, name: str, neuron: NeuronFunction, population: Population, scope: dict[str, StepTensor]) -> dict[str, StepTensor]:
        results = {result: self.body.names.fresh(f"{name}.{result}") for result in neuron.results}
        arguments = [scope[n].name for n in neuron.proto.input]
        self.body.nodes.append(helper.make_node(neuron.name, arguments, list(results.values()), name=name, domain=DOMAIN))
        return {r: StepTensor(value, population.shape, r not in neuron.unbatched) for r, value in results.items()}

    def _spread(self, value: StepTensor, shape: Shape) -> StepTensor:
        spread = self.body.node("Expand", value.name, full_shape(self.main, self.batch, shape), hint=f"{value.name}_spread")
        return replace(value, name=spread, shape=shape, batched=True, truth=None)  # the boolean tensor is not expanded
