"""Traces: the values in an ONNX file that each state and output of a recovered population must equal, step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from snnc.compiler.ir.graph import Graph, Population
from snnc.compiler.neurons.expression import Symbol
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.onnx.flattening.evaluate import Inputs
from snnc.frontends.onnx.flattening.node import Array, Node, NodePool, Shape
from snnc.frontends.onnx.recovery.equations import is_spike
from snnc.frontends.onnx.recovery.naming import NamedEquations
from snnc.frontends.onnx.reroll.step import RecoveredStep


@dataclass(frozen=True, eq=False)
class Trace:
    """A state or output of a population, and the values in the file that it must equal.

    `population` and `port` are a node of the graph and one of its source ports, and `neurons` is the shape of the population.
    """

    population: str
    port: str
    fires: bool
    """Whether the values are spikes, 0 or 1."""
    nodes: Mapping[int, Node]  # node of the file by step, without steps that the file does not compute
    shape: Shape
    batch: int | None
    """Shape of the file's value at one step, and its batch axis."""
    neurons: Shape

    def arrange(self, value: Array) -> Array:
        """Convert the file's value at one step to [batch, *neurons]."""
        if value.size != math.prod(self.shape):
            value = np.broadcast_to(value, self.shape)
        if self.batch is None:
            return value.reshape(1, *self.neurons)
        if math.prod(self.shape[: self.batch]) != 1:
            value = np.moveaxis(value.reshape(self.shape), self.batch, 0)
        return value.reshape(self.shape[self.batch], *self.neurons)


@dataclass(frozen=True, eq=False)
class Imported:
    """A graph read from a file, and its relation to the file.

    `graph` is the graph of one time step, `traces` are the states and outputs of its populations, in the order of the network. `inputs` are
    the time axes, shapes and number of steps with which the file was read, and `pool` contains the flattened file.
    """

    graph: Graph
    traces: tuple[Trace, ...]
    inputs: Inputs
    pool: NodePool
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Value, by name, of each size that the file declares as dynamic but that its constants fix."""
    declared: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    """Shapes of the inputs as declared in the file; names are dynamic sizes."""
    carried: Mapping[str, str] = field(default_factory=dict)
    """For a single-step file: the output with the new value of a state, by state input."""

    @property
    def stepwise(self) -> bool:
        """Whether the file is a single time step; its inputs have no time axis, those of the graph have one."""
        return any(len(self.declared[n]) < len(self.inputs.shapes[n]) for n in self.inputs.axes)

    def input_shape(self, name: str) -> tuple[int | str, ...]:
        """Return the shape of an input of the graph; names are open sizes: "steps", or dynamic sizes that are not in `fixed`."""
        shape = tuple(self.fixed.get(d, d) if isinstance(d, str) else d for d in self.declared[name])
        return ("steps", *shape) if self.stepwise and name in self.inputs.axes else shape

    def size(self, name: str, axis: int | None) -> int | None:
        """Return the size that the file fixes for an axis of an input of the graph; None if it is open."""
        size = None if axis is None else self.input_shape(name)[axis]
        return size if isinstance(size, int) else None


def traces_of(step: RecoveredStep, named: NamedEquations, name: str, population: Population) -> tuple[Trace, ...]:
    """Return the traces of one population: its states, then its outputs."""
    ports = {port: cls for cls, port in (*named.outputs.items(), *named.states.items())}
    traces = []
    for port in dict.fromkeys(p for p in (*population.model.states, *population.model.outputs) if p in ports):
        step_class = step.classes[ports[port]]
        nodes = {t: early[0] for t, early in step_class.forced.items()} | step_class.nodes
        batch = step.batch[step_class.id]
        traces.append(Trace(name, port, is_spike_port(population.model, port), nodes, step_class.shape, batch, population.shape))
    return tuple(traces)


def is_spike_port(model: NeuronModel, port: str) -> bool:
    """Return whether the equation of `port` is the spike function, or copies the result of one."""
    lines = {line.target: line.value for line in model.equations}
    value = lines.get(port)
    seen = {port}
    while isinstance(value, Symbol) and value.name not in seen:
        seen.add(value.name)
        value = lines.get(value.name)
    return value is not None and is_spike(value)
