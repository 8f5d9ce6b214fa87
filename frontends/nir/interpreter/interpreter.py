"""Reference interpreter of NIR files: evaluates the equations of the standard node by node and step by step, in float64.

It uses neither snnc's graph nor its neurons, so that comparing it with :func:`~snnc.frontends.nir.load.load_nir` is meaningful.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.frontends.nir.errors import NirSimulationError, NirTimeStepError
from snnc.frontends.nir.interpreter.node_functions import Conventions, Function, NirNeuron, conventions_of, function, spread
from snnc.frontends.nir.interpreter.shapes import entering_shapes
from snnc.frontends.nir.interpreter.wired_graph import Edge, Unfolded, delay_steps, edge_lags, step_order, unfold
from snnc.frontends.nir.reading.fields import FIRING, NEURONS
from snnc.frontends.nir.reading.reader import read_nir

MAX_DELAY: Final = 65_535
"""Maximum number of steps of a delay."""


@dataclass(frozen=True, eq=False)
class InterpretedRun:
    """Results of running a file's network."""

    outputs: dict[str, Array] = field(default_factory=dict)  # values [T, B, *shape], by output
    spikes: dict[str, Array] = field(default_factory=dict)  # [T, B, *shape], by node that fires
    states: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Values after each step [T, B, *shape], by neuron and state (``v``, ``syn``)."""
    margins: dict[str, Array] = field(default_factory=dict)  # membrane potential (input of a Threshold) minus threshold, before a reset
    late: tuple[Edge, ...] = ()  # edges that read the previous step


def simulate(path: str | Path, arrays: Mapping[str, Array], *, dt: float | None = None, dialect: str = "nir") -> InterpretedRun:
    """Run the network of a NIR file on `arrays`, values [T, B, *shape] by input.

    `dt`, in seconds per step, defaults to the file's metadata, else to the dialect's value. `dialect` is the framework whose NIR
    conventions apply (nir, snntorch, norse, spikingjelly, spyx). Raises a NirError if the file is invalid, or the arrays do not fit it.
    """
    conventions = conventions_of(dialect)
    file = read_nir(Path(path))
    step = float(file.metadata.get("dt", conventions.dt) if dt is None else dt)
    if not math.isfinite(step) or step <= 0:
        raise NirTimeStepError(f"dt is {step:g}; it must be a number of seconds above 0.")
    try:
        return _Interpreter(unfold(file, bypass_weights=conventions.bypass_weights), step, conventions).run(arrays)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise NirSimulationError(f"{path} has inconsistent fields ({type(error).__name__}: {str(error)[:120]}).") from None


class _Interpreter:
    """Runs a graph whose nested graphs are flattened, step by step.

    `edge_lags` is 1 for each edge that reads the previous step, and 0 for other edges; `delays` are the delays in steps of Delay nodes.
    """

    def __init__(self, unfolded: Unfolded, dt: float, conventions: Conventions) -> None:
        self.nodes, self.dt, self.conventions = unfolded.nodes, dt, conventions
        self.sources = unfolded.sources()
        self.delays = delay_steps(unfolded, dt)
        if any(delay.min() < 0 or delay.max() > MAX_DELAY for delay in self.delays.values()):
            raise NirSimulationError(f"a delay is negative or longer than {MAX_DELAY:,} steps of {dt:g} s.")
        self.edge_lags = edge_lags(unfolded, self.delays, late_spikes=conventions.late_spikes)
        self.order = step_order(unfolded, self.edge_lags, self.delays)
        self.shapes = entering_shapes(unfolded)
        self.delays = {name: spread(delay.astype(np.float64), self.shapes[name]).astype(np.int64) for name, delay in self.delays.items()}

    def run(self, arrays: Mapping[str, Array]) -> InterpretedRun:
        inputs = {n: self._input(n, arrays) for n, node in self.nodes.items() if node.type == "Input"}
        if len({x.shape[:2] for x in inputs.values()}) != 1:
            raise NirSimulationError("the inputs differ in their number of steps or samples; give all of them the same [T, B].")
        steps, batch = next(iter(inputs.values())).shape[:2]
        self._begin(batch)
        result = InterpretedRun(late=tuple(edge for edge, lag in self.edge_lags.items() if lag))
        for t in range(steps):
            self._step({name: x[t] for name, x in inputs.items()})
            self._record(result, t, steps)
        return result

    def _input(self, name: str, arrays: Mapping[str, Array]) -> Array:
        if name not in arrays:
            raise NirSimulationError(f"the input {name!r} is missing; given are {', '.join(map(repr, arrays))}.")
        x, shape = np.asarray(arrays[name], np.float64), self.shapes[name]
        if x.ndim < 2 or math.prod(x.shape[2:]) != math.prod(shape):
            raise NirSimulationError(f"the input {name!r} has the shape {list(x.shape)}; it must be [T, B, {', '.join(map(str, shape))}].")
        return x.reshape(*x.shape[:2], *shape)

    def _begin(self, batch: int) -> None:
        self.values: dict[str, Array] = {}
        self.previous_values: dict[str, Array] = {}
        self.batch = batch
        self.neurons = {
            n: NirNeuron(node, self.shapes[n], batch, self.dt, self.conventions) for n, node in self.nodes.items() if node.type in NEURONS
        }
        self.functions: dict[str, Function] = {
            n: function(node, self.shapes[n], self.conventions) for n, node in self.nodes.items() if n not in self.neurons
        }
        self.past: dict[str, deque[Array]] = {name: deque(maxlen=int(delay.max()) + 1) for name, delay in self.delays.items()}
        self.margins: dict[str, Array] = {}

    def _step(self, inputs: Mapping[str, Array]) -> None:
        self.values = dict(inputs)
        waiting = [name for name, delay in self.delays.items() if delay.min() > 0]  # their output does not depend on this step's input
        for name in self.order:
            if name in inputs:
                continue
            if name in self.delays:
                if name not in waiting:
                    self.past[name].append(self._summed_inputs(name))
                self.values[name] = self._delayed(name, 0 if name in waiting else 1)
            elif name in self.neurons:
                self.values[name] = self.neurons[name](self._summed_inputs(name))
            else:
                x = self._summed_inputs(name)
                self.values[name] = self.functions[name](x)
                if self.nodes[name].type == "Threshold":
                    self.margins[name] = x - spread(np.asarray(self.nodes[name].fields["threshold"], np.float64), self.shapes[name])
        for name in waiting:
            self.past[name].append(self._summed_inputs(name))
        self.previous_values = self.values

    def _summed_inputs(self, name: str) -> Array:
        shape = (self.batch, *self.shapes[name])
        total = np.zeros(shape)
        for source in self.sources[name]:
            value = self.previous_values.get(source) if self.edge_lags[source, name] else self.values[source]
            if value is not None:
                if math.prod(value.shape) != math.prod(shape):
                    raise NirSimulationError(f"{source!r} has the shape {list(value.shape[1:])}, but {name!r} reads {list(shape[1:])}.")
                total = total + value.reshape(shape)
        return total

    def _delayed(self, name: str, arrived: int) -> Array:
        """Return the output of a Delay node; `arrived` is 1 if `past` includes this step's input."""
        past, delay = self.past[name], self.delays[name]
        output = np.zeros((self.batch, *self.shapes[name]))
        for steps in np.unique(delay).tolist():
            if steps + arrived <= len(past):
                output = np.where(delay == steps, past[-steps - arrived], output)
        return output

    def _record(self, result: InterpretedRun, t: int, steps: int) -> None:

        def store(into: dict[str, Array], name: str, value: Array) -> None:
            if t == 0:
                into[name] = np.zeros((steps, *value.shape))
            into[name][t] = value

        for name, node in self.nodes.items():
            if node.type == "Output":
                store(result.outputs, name, self.values[name])
            if node.type in FIRING or node.type == "Threshold":
                store(result.spikes, name, self.values[name])
                store(result.margins, name, self.neurons[name].margin if name in self.neurons else self.margins[name])
            if name in self.neurons:
                states = result.states.setdefault(name, {})
                for state, value in self.neurons[name].states.items():
                    store(states, state, value)
