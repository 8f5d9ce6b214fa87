"""Run a graph in NumPy, step by step, for example to compare it with the file from which it was imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import networkx as nx
import numpy as np

from snnc.compiler.ir.arrays.windows import windows_of
from snnc.compiler.ir.graph import (
    Add,
    Array,
    Concat,
    Conv,
    Edge,
    Flatten,
    Graph,
    Input,
    Linear,
    OneToOne,
    Output,
    Pad,
    Pool,
    Population,
    Reduce,
    Reshape,
    Scale,
    Shape,
    Slice,
    Sparse,
    source_ports,
)
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.neurons.interpret import evaluate
from snnc.frontends.common import windows
from snnc.frontends.common.functions import summary

Key: TypeAlias = tuple[str, str]
Layer: TypeAlias = Callable[[Mapping[str, Array]], Array]


class GraphRunner:
    """One run of a graph on a batch, in float64.

    Parameters
    ----------
    graph
        The graph.
    batch
        Number of samples.
    given
        Values of the graph's state inputs by name, [batch, …].
    """

    def __init__(self, graph: Graph, batch: int, given: Mapping[str, Array]) -> None:
        self._batch = batch
        self._shapes = {key: port.shape for key, port in port_map(graph).items()}
        self._initial_inputs = {(r.node, r.name): given[n] for n, r in graph.state_inputs.items() if n in given}
        self._initial_states = {(n, s): np.asarray(p.before(s), np.float64) for n, p in graph.of_type(Population) for s in p.model.states}
        self._states = {n: {s: self._before_start((n, s)) for s in p.model.states} for n, p in graph.of_type(Population)}
        self._history: list[dict[Key, Array]] = []
        """Values of delayed ports in previous steps, latest first."""
        self._depth = max((e.delay for e in graph.edges), default=0)
        self._late = sorted({(e.source, e.source_port) for e in graph.edges if e.delay})
        self._summed = {n: self._shapes[n, "out"] for n, _ in graph.of_type(Add)} | {n: p.shape for n, p in graph.of_type(Population)}
        """Shape of the sum, by node that sums its incoming edges."""
        self._plan = [(n, list(graph.incoming(n)), graph.operation(n)) for n in step_order(graph)]
        """Nodes in evaluation order, with their incoming edges and operations."""
        self._layers = {n: self._layer(n, graph) for n, _, op in self._plan if not isinstance(op, Population | Input | Output)}
        self._fixed = {n: _parameters(p) for n, p in graph.of_type(Population)}
        self.ports: dict[Key, Array] = {}
        """Value of each (node, port) in the last step, [batch, …]."""

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one step on inputs [batch, …] and return the values of the outputs."""
        now: dict[Key, Array] = {}
        recorded: dict[str, Array] = {}
        for name, edges, operation in self._plan:
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
        self._history.insert(0, {key: now[key] for key in self._late})
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
        """Return the value of a state or port before the first step, from the caller if given, else from the graph."""
        shape = (self._batch, *self._shapes[key])
        if key in self._initial_inputs:
            return self._initial_inputs[key].reshape(shape)
        return np.broadcast_to(self._initial_states.get(key, np.zeros(())), shape)

    def _population(self, name: str, p: Population, sums: Mapping[str, Array], now: dict[Key, Array]) -> None:
        shape = (self._batch, *p.shape)
        scope = {**self._fixed[name], **self._states[name]}
        scope.update({port: value if value.shape == shape else value.reshape(shape) for port, value in sums.items()})
        scope |= evaluate(p.model.equations, scope)
        self._states[name] = {s: scope[s] for s in p.model.states}
        for port in source_ports(p):
            value = scope[port]
            now[name, port] = value if value.shape == shape else np.broadcast_to(value, shape)

    def _layer(self, name: str, graph: Graph) -> Layer:
        """Return the function that computes a layer from its inputs."""
        operation = graph.operation(name)
        batch = self._batch
        match operation:
            case Sparse(weight, indices, indptr, full, bias):
                from scipy.sparse import csr_array  # the import takes 0.2 s, and files without sparse weights do not need it

                matrix = csr_array((np.asarray(weight, np.float64), indices, indptr), full).T
                shift = 0.0 if bias is None else np.asarray(bias, np.float64)
                return lambda x: x["in"].reshape(batch, -1) @ matrix + shift
            case Linear(weight, bias):
                w, b = np.asarray(weight.T, np.float64), None if bias is None else np.asarray(bias, np.float64)
                return lambda x: x["in"].reshape(batch, -1) @ w + (0.0 if b is None else b)
            case Conv() | Pool():
                return _windowed(name, operation, self._shapes[_source(graph, name)])
            case Scale(weight, bias):
                return lambda x: x["in"] * weight + (0.0 if bias is None else bias)
            case OneToOne(weight):
                return lambda x: x["in"] if weight is None else x["in"] * weight
            case Concat(axis):
                at = axis % len(self._shapes[name, "out"]) + 1
                return lambda x: np.concatenate([x[str(k)] for k in range(len(x))], at)
            case Reduce(kind, axes, keepdims):
                inner = tuple(a % len(self._shapes[_source(graph, name)]) + 1 for a in axes)
                return lambda x: _reduced(kind, x["in"], inner, keepdims)
            case Slice(axis, start, stop):
                front = (slice(None),) * (axis % len(self._shapes[name, "out"]) + 1)
                return lambda x: x["in"][(*front, slice(start, stop))]
            case Pad(padding):
                return lambda x: np.pad(x["in"], ((0, 0), *padding))
            case Add():
                return lambda x: x["in"]
            case Flatten() | Reshape():
                shape = (batch, *self._shapes[name, "out"])
                return lambda x: x["in"].reshape(shape)
        raise TypeError(operation)


def _reduced(kind: str, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    found = summary(kind, x, axes)
    return found if keepdims else np.squeeze(found, axes)


def _source(graph: Graph, name: str) -> Key:
    edge = graph.incoming(name)[0]
    return edge.source, edge.source_port


def _windowed(name: str, operation: Conv | Pool, shape: Shape) -> Layer:
    w = windows_of(name, operation, shape)
    if isinstance(operation, Conv):
        conv = operation
        weight = np.asarray(conv.weight, np.float64)
        bias = None if conv.bias is None else np.asarray(conv.bias, np.float64)
        return lambda x: windows.convolve(x["in"], weight, bias, w.stride, w.padding, w.dilation, conv.groups)
    pool = operation
    return lambda x: windows.pool(x["in"], pool.kind, w.kernel, w.stride, w.padding, w.dilation, pool.ceil, pool.count_padding)


def step_order(graph: Graph) -> list[str]:
    """Return the nodes in evaluation order within a step; ties keep the order of insertion."""
    rank = {name: number for number, name in enumerate(graph.names)}
    same: nx.DiGraph[str] = nx.DiGraph()
    same.add_nodes_from(graph.names)
    same.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    return list(nx.lexicographical_topological_sort(same, key=rank.__getitem__))


def _parameters(p: Population) -> dict[str, Array]:
    values = {**p.model.parameters, **p.parameters}
    return {k: np.asarray(v, np.float64) for k, v in values.items()}
