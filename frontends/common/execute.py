"""Run a graph in NumPy, step by step, for example to compare it with the file from which it was imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import networkx as nx
import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.arrays.windows import windows_of
from snnc.compiler.ir.graph import Add, Array, Edge, Graph, Input, Output, Population, source_ports
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.neurons.interpret import evaluate
from snnc.frontends.common import windows
from snnc.frontends.common.functions import reduce_over

Key: TypeAlias = tuple[str, str]
"""A node and one of its ports or states."""
Layer: TypeAlias = Callable[[Mapping[str, Array]], Array]
"""A function that computes a layer from its inputs by port."""


class GraphRunner:
    """One run of a graph on `batch` samples, in float64.

    `state_inputs` contains values of the graph's state inputs by name, [batch, …]; states without a value start as the graph says.
    """

    def __init__(self, graph: Graph, batch: int, state_inputs: Mapping[str, Array]) -> None:
        self._batch = batch
        self._shapes = {key: port.shape for key, port in port_map(graph).items()}
        self._initial_inputs = {(r.node, r.name): state_inputs[n] for n, r in graph.state_inputs.items() if n in state_inputs}
        self._initial_states = {(n, s): np.asarray(p.before(s), np.float64) for n, p in graph.of_type(Population) for s in p.model.states}
        self._states = {n: {s: self._before_start((n, s)) for s in p.model.states} for n, p in graph.of_type(Population)}
        self._history: list[dict[Key, Array]] = []
        """Values of the ports that are read with a delay, one entry per previous step, latest first."""
        self._depth = max((e.delay for e in graph.edges), default=0)
        self._delayed = sorted({(e.source, e.source_port) for e in graph.edges if e.delay})
        self._summed = {n: self._shapes[n, "out"] for n, _ in graph.of_type(Add)} | {n: p.shape for n, p in graph.of_type(Population)}
        """Shape of the summed input of each Add and each population."""
        self._nodes = [(n, list(graph.incoming(n)), graph.operation(n)) for n in step_order(graph)]
        """Nodes in evaluation order, with their incoming edges and operations."""
        self._layers = {n: self._layer(n, graph) for n, _, op in self._nodes if not isinstance(op, Population | Input | Output)}
        self._parameters = {
            n: {k: np.asarray(v, np.float64) for k, v in {**p.model.parameters, **p.parameters}.items()}
            for n, p in graph.of_type(Population)
        }
        self.ports: dict[Key, Array] = {}
        """Value of each (node, port) in the last step, [batch, …]."""

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one step on inputs [batch, …] and return the values of the outputs."""
        now: dict[Key, Array] = {}
        recorded: dict[str, Array] = {}
        for name, edges, operation in self._nodes:
            if isinstance(operation, Input):
                now[name, "out"] = inputs[name]
                continue
            sums: dict[str, Array] = {}
            for e in edges:
                value = self._read(e, now)
                if isinstance(operation, Population | Add):  # the operands of a sum may have other shapes of the same size
                    value = value.reshape(self._batch, *self._summed[name])
                sums[e.target_port] = sums[e.target_port] + value if e.target_port in sums else value
            if isinstance(operation, Output):
                recorded[name] = sums["in"]
            elif isinstance(operation, Population):
                self._population(name, operation, sums, now)
            else:
                now[name, "out"] = self._layers[name](sums)
        self._history.insert(0, {key: now[key] for key in self._delayed})
        del self._history[self._depth :]
        self.ports = now
        return recorded

    def _read(self, e: Edge, now: Mapping[Key, Array]) -> Array:
        key = (e.source, e.source_port)
        if e.delay == 0:
            return now[key]
        if e.delay <= len(self._history):
            return self._history[e.delay - 1][key]
        return self._before_start(key)

    def _before_start(self, key: Key) -> Array:
        """Return the value of a state or port before the first step: that of its state input, else the graph's."""
        shape = (self._batch, *self._shapes[key])
        if key in self._initial_inputs:
            return self._initial_inputs[key].reshape(shape)
        return np.broadcast_to(self._initial_states.get(key, np.zeros(())), shape)

    def _population(self, name: str, p: Population, sums: Mapping[str, Array], now: dict[Key, Array]) -> None:
        scope = {**self._parameters[name], **self._states[name], **sums}
        scope |= evaluate(p.model.equations, scope)
        self._states[name] = {s: scope[s] for s in p.model.states}
        now.update({(name, port): np.broadcast_to(scope[port], (self._batch, *p.shape)) for port in source_ports(p)})

    def _layer(self, name: str, graph: Graph) -> Layer:
        operation = graph.operation(name)
        source = graph.incoming(name)[0]
        batch, read, result = self._batch, self._shapes[source.source, source.source_port], self._shapes[name, "out"]
        match operation:
            case ir.Sparse(weight, indices, indptr, full, bias):
                from scipy.sparse import csr_array  # the import takes 0.2 s, and files without sparse weights do not need it

                matrix, shift = csr_array((np.asarray(weight, np.float64), indices, indptr), full).T, _shift(bias)
                return lambda x: x["in"].reshape(batch, -1) @ matrix + shift
            case ir.Linear(weight, bias):
                dense, shift = np.asarray(weight.T, np.float64), _shift(bias)
                return lambda x: x["in"].reshape(batch, -1) @ dense + shift
            case ir.Conv(bias=bias, groups=groups):
                w, kernel = windows_of(name, operation, read), np.asarray(operation.weight, np.float64)
                channel_bias = None if bias is None else np.asarray(bias, np.float64)
                return lambda x: windows.convolve(x["in"], kernel, channel_bias, w.stride, w.padding, w.dilation, groups)
            case ir.Pool(kind, ceil=ceil, count_padding=count):
                w = windows_of(name, operation, read)
                return lambda x: windows.pool(x["in"], kind, w.kernel, w.stride, w.padding, w.dilation, ceil, count)
            case ir.Scale(weight, bias):
                return lambda x: x["in"] * weight + (0.0 if bias is None else bias)
            case ir.OneToOne(weight):
                return lambda x: x["in"] if weight is None else x["in"] * weight
            case ir.Concat(axis):
                at = axis % len(result) + 1
                return lambda x: np.concatenate([x[str(k)] for k in range(len(x))], at)
            case ir.Reduce(kind, axes, keepdims):
                over = tuple(a % len(read) + 1 for a in axes)
                return lambda x: reduce_over(kind, x["in"], over) if keepdims else np.squeeze(reduce_over(kind, x["in"], over), over)
            case ir.Slice(axis, start, stop):
                front = (slice(None),) * (axis % len(result) + 1)
                return lambda x: x["in"][(*front, slice(start, stop))]
            case ir.Pad(padding):
                return lambda x: np.pad(x["in"], ((0, 0), *padding))
            case Add():
                return lambda x: x["in"]
            case ir.Flatten() | ir.Reshape():
                return lambda x: x["in"].reshape(batch, *result)
        raise TypeError(operation)


def _shift(bias: Array | None) -> Array:
    return np.zeros(()) if bias is None else np.asarray(bias, np.float64)


def step_order(graph: Graph) -> list[str]:
    """Return the nodes in evaluation order within a step; ties keep the order of insertion."""
    rank = {name: number for number, name in enumerate(graph.names)}
    same: nx.DiGraph[str] = nx.DiGraph()
    same.add_nodes_from(graph.names)
    same.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    return list(nx.lexicographical_topological_sort(same, key=rank.__getitem__))
