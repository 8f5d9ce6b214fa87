"""Find the weights into each population, and the population or input that they read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import networkx as nx
import numpy as np

from snnc.compiler.ir.graph import WEIGHTED, Array, Conv, Edge, Graph, Input, Linear, OneToOne, Population, Scale, Sparse, Weighted
from snnc.compiler.passes.edit import replace_operation
from snnc.frontends.dsl.initialisers import Fans

Connection: TypeAlias = Linear | Sparse | Conv
"""Operations whose weights are initialised; weights of OneToOne and Scale keep their values."""


@dataclass(frozen=True)
class IncomingWeights:
    """Learnable weights into one population, in the node `name` with the operation `operation`.

    `port` is the input port of the population, `path` the nodes from the source, an Input or Population, to the predecessor of the weights,
    and `recurrent` whether the source also depends on the population.
    """

    name: str
    operation: Connection
    port: str
    path: tuple[str, ...]
    recurrent: bool

    @property
    def fans(self) -> Fans:
        """Number of weights into and out of one neuron.

        Of a sparse connection, the means over its neurons; of a convolution, the numbers for a neuron away from the border, with stride 1.
        """
        weight = self.operation.weight
        match self.operation:
            case Sparse(shape=(outputs, inputs)):
                return Fans(weight.size / outputs, weight.size / inputs)
            case Conv(groups=groups):
                kernel = math.prod(weight.shape[2:])
                return Fans(weight.shape[1] * kernel, weight.shape[0] // groups * kernel)
        return Fans(weight.shape[1], weight.shape[0])


def incoming_weights(graph: Graph) -> dict[str, list[IncomingWeights]]:
    """Return the learnable weights into each population, in dataflow order except within a recurrence."""
    component_of = {name: group for group in nx.strongly_connected_components(graph.nx) for name in group}
    condensed = nx.condensation(graph.nx)  # each recurrence becomes one node, with its members
    order = nx.lexicographical_topological_sort(condensed)
    names = [name for group in order for name in graph.names if name in condensed.nodes[group]["members"]]
    by_population: dict[str, list[IncomingWeights]] = {}
    for name in names:
        if isinstance(graph.operation(name), Population):
            by_population[name] = [
                IncomingWeights(node, operation, port, path, path[0] in component_of[name])
                for edge in graph.incoming(name)
                for node, operation, port, path in _weights(graph, edge, edge.target_port, frozenset())
            ]
    return by_population


def _weights(graph: Graph, edge: Edge, port: str, seen: frozenset[str]) -> Iterator[tuple[str, Connection, str, tuple[str, ...]]]:
    """Walk back from `edge` and yield the nearest learnable weights."""
    operation = graph.operation(edge.source)
    if isinstance(operation, Population | Input) or edge.source in seen:
        return
    if isinstance(operation, Linear | Sparse | Conv):
        if operation.learnable:
            yield edge.source, operation, port, _path(graph, edge.source)
        return
    for before in graph.incoming(edge.source):
        yield from _weights(graph, before, port, seen | {edge.source})


def _path(graph: Graph, name: str) -> tuple[str, ...]:
    """Return the nodes from the first source of node `name` to its predecessor."""
    path: list[str] = []
    while not isinstance(graph.operation(name), Population | Input):
        name = graph.incoming(name)[0].source
        path.insert(0, name)
    return tuple(path)


def with_weights(graph: Graph, name: str, weight: Array) -> None:
    """Replace the weight of node `name` by one of the same size, and set its bias, if any, to 0."""
    operation = graph.operation(name)
    assert isinstance(operation, WEIGHTED)
    changed: Weighted = replace(operation, weight=np.ascontiguousarray(weight, np.float32).reshape(np.shape(operation.weight)))
    if not isinstance(changed, OneToOne | Scale) and changed.bias is not None:
        changed = replace(changed, bias=np.zeros_like(changed.bias))
    replace_operation(graph, name, changed)


def scale_weights(graph: Graph, name: str, factor: float) -> None:
    """Multiply the weight of node `name` by `factor`, and set its bias, if any, to 0."""
    operation = graph.operation(name)
    assert isinstance(operation, Connection)
    with_weights(graph, name, operation.weight * factor)
