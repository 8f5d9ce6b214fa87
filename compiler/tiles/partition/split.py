"""Division of the populations of a graph into parts, which become populations.

A connection becomes one connection for each pair of parts between which it has weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from snnc.compiler.ir.connections import recorded
from snnc.compiler.ir.graph import Array, Edge, Flatten, Graph, Linear, Output, Population, Reshape, Sparse, StateRef
from snnc.compiler.passes.edit import add_edge, fresh_name
from snnc.compiler.tiles.errors import UnreachedPartError
from snnc.compiler.tiles.partition.hypergraph import Ints

Connection: TypeAlias = Linear | Sparse
"""A connection that can be divided."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Index of the part of every neuron, by population: arrays [neurons]; populations that are not listed stay whole.

    `places`, also arrays [neurons], order the neurons in each part; neurons of populations without places keep the author's order.
    """

    parts: Mapping[str, Ints]
    places: Mapping[str, Ints] = field(default_factory=dict)

    def members(self, name: str) -> tuple[Ints, ...]:
        """Return the neurons of each nonempty part, in the order of that part."""
        number = self.parts[name]
        place = self.places.get(name, np.zeros(len(number), dtype=np.int64))
        order = np.lexsort((place, number))
        return tuple(np.split(order, np.flatnonzero(np.diff(number[order])) + 1))


@dataclass(frozen=True, eq=False)
class ArrayPiece:
    """Elements of a population, output, parameter or buffer of the original network: its name, and indices in the flattened array."""

    whole: str
    index: Ints | None
    """Indices of the elements; None: all elements."""


@dataclass(frozen=True, eq=False)
class Split:
    """The graph of the parts, with the origin of its nodes and arrays."""

    graph: Graph
    """The divided graph, which computes the same results as the original."""
    populations: Mapping[str, ArrayPiece]
    outputs: Mapping[str, ArrayPiece]
    """Neurons of each part, and neurons recorded by each output, by the new names."""
    parameters: Mapping[str, ArrayPiece]
    """Elements of the weight, bias and parameters of each part, by label (``"<node>.weight"``)."""


def split(graph: Graph, partition: Partition) -> Split:
    """Cut the populations of `partition`, which have only Linear and Sparse connections, into parts; `graph` is not modified.

    A part to which no connection leads, or with the bias of a connection but none of its weights, raises an UnreachedPartError.
    """
    work = _Work(graph, partition)
    for name in graph.names:
        work.add(name)
    for edge in (*work.edges, *filter(work.stays, graph.edges)):
        add_edge(work.made, edge)
    for whole, members in work.members.items():
        for part, index in zip(work.parts[whole], members, strict=True):
            if not work.made.incoming(part):
                raise UnreachedPartError(f"no connection leads to {part!r}, {len(index)} neurons of {whole!r}.")
    return Split(work.made, work.populations, work.outputs, work.parameters)


@dataclass
class _Work:
    graph: Graph
    partition: Partition
    populations: dict[str, ArrayPiece] = field(default_factory=dict)
    outputs: dict[str, ArrayPiece] = field(default_factory=dict)
    parameters: dict[str, ArrayPiece] = field(default_factory=dict)
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    """Connections and outputs of parts, whose edges are in `edges`."""
    edges: list[Edge] = field(default_factory=list)
    """Edges of parts; their nodes may be added later."""

    def __post_init__(self) -> None:
        old = self.graph
        self.members = {name: self.partition.members(name) for name in self.partition.parts}
        self.made = Graph(old.name, old.steps)
        self.made.idle_inputs, self.made.assumptions = dict(old.idle_inputs), list(old.assumptions)
        for name, members in self.members.items():
            several = len(members) > 1
            self.parts[name] = tuple(fresh_name(old, f"{name} part {k}") if several else name for k in range(len(members)))
        for label, ref in old.state_inputs.items():
            for k, part in enumerate(self.parts.get(ref.node, (ref.node,))):
                self.made.state_inputs[label if part == ref.node else f"{label} part {k}"] = StateRef(part, ref.name)

    def add(self, name: str) -> None:
        """Add the node `name` of the original graph, or its parts."""
        operation = self.graph.operation(name)
        match operation:
            case Population() if name in self.members:
                for part, index in zip(self.parts[name], self.members[name], strict=True):
                    self._population(name, operation, part, index)
            case Linear() | Sparse() if self._ends(name) != (None, None):
                self._connection(name, operation)
            case Output() if (source := recorded(self.graph, name))[0] in self.members:
                self._outputs(name, operation, *source)
            case Flatten() | Reshape() if self.graph.incoming(name)[0].source in self.members:
                pass  # only leads to outputs, which have their own shapes
            case _:
                self.made.add(name, operation)

    def stays(self, edge: Edge) -> bool:
        """Return whether an edge of the original graph is also an edge of the divided one."""
        return edge.source in self.made.nx and edge.target in self.made.nx and not self.joined & {edge.source, edge.target}

    def _ends(self, name: str) -> tuple[tuple[Ints, ...] | None, tuple[Ints, ...] | None]:
        """Return the members of the parts of a connection's source and target; None for an undivided population."""
        (before,), (after,) = self.graph.incoming(name), self.graph.outgoing(name)
        return self.members.get(before.source), self.members.get(after.target)

    def _population(self, whole: str, operation: Population, part: str, index: Ints) -> None:

        def restricted(values: Mapping[str, Array]) -> dict[str, Array]:
            return {name: np.asarray(v).reshape(-1)[index] if np.ndim(v) else v for name, v in values.items()}

        parameters = restricted(operation.parameters)
        self.made.add(part, replace(operation, shape=(len(index),), parameters=parameters, initial=restricted(operation.initial)))
        self.populations[part] = ArrayPiece(whole, index)
        for name in operation.model.parameters:
            per_neuron = np.ndim(operation.parameters.get(name, 0.0)) > 0
            self.parameters[f"{part}.{name}"] = ArrayPiece(f"{whole}.{name}", index if per_neuron else np.zeros(1, np.int64))

    def _outputs(self, name: str, operation: Output, source: str, port: str, delay: int) -> None:
        for part, index in zip(self.parts[source], self.members[source], strict=True):
            several = len(self.parts[source]) > 1
            new = self.made.add(fresh_name(self.made, f"{name} of {part}") if several else name, operation)
            self.edges.append(Edge(part, new, port, "in", delay))
            self.joined.add(new)
            self.outputs[new] = ArrayPiece(name, index)

    def _connection(self, name: str, operation: Connection) -> None:
        """Add the pieces of a connection between all parts of its source and of its target; only the first piece per target has a bias."""
        (before,), (after,) = self.graph.incoming(name), self.graph.outgoing(name)
        sources, targets = self._ends(name)
        for t, rows in enumerate(targets if targets is not None else (None,)):
            bias_set = operation.bias is None  # whether a piece has the bias, or there is none
            for s, columns in enumerate(sources if sources is not None else (None,)):
                cut = _cut(operation, rows, columns)
                if cut is None:
                    continue
                piece, index = cut
                where = [f"from part {s}"] * (sources is not None and len(sources) > 1)
                where += [f"to part {t}"] * (targets is not None and len(targets) > 1)
                new = self.made.add(
                    fresh_name(self.made, " ".join([name, *where])) if where else name, piece if not bias_set else replace(piece, bias=None)
                )
                self.parameters[f"{new}.weight"] = ArrayPiece(f"{name}.weight", index)
                if not bias_set:
                    every = np.arange(operation.weight.shape[0] if isinstance(operation, Linear) else operation.shape[0])
                    self.parameters[f"{new}.bias"] = ArrayPiece(f"{name}.bias", every if rows is None else rows)
                bias_set = True
                source = before.source if columns is None else self.parts[before.source][s]
                target = after.target if rows is None else self.parts[after.target][t]
                self.joined.add(new)
                self.edges += [replace(before, source=source, target=new), replace(after, source=new, target=target)]
            if not bias_set:
                raise UnreachedPartError(f"part {t} of {after.target!r} has the bias of {name!r} but none of its weights.")


def _cut(operation: Connection, rows: Ints | None, columns: Ints | None) -> tuple[Connection, Ints] | None:
    """Return a connection with the given rows and columns of the weight (None: all), and the indices of its elements; None if empty."""
    bias = operation.bias if operation.bias is None or rows is None else operation.bias[rows]
    if isinstance(operation, Linear):
        outputs, inputs = operation.weight.shape
        every = np.arange(outputs * inputs).reshape(outputs, inputs)
        every = every if rows is None else every[rows]
        every = every if columns is None else every[:, columns]
        return replace(operation, weight=operation.weight.reshape(-1)[every], bias=bias), every.reshape(-1)
    from scipy.sparse import csr_array

    # Entries are numbered from 1, because a stored 0 could be mistaken for an absent entry.
    numbered = csr_array((np.arange(1, len(operation.weight) + 1), operation.indices, operation.indptr), shape=operation.shape)
    numbered = numbered if rows is None else numbered[rows]
    numbered = numbered if columns is None else numbered[:, columns]
    numbered.sort_indices()
    if not numbered.nnz:
        return None
    index = numbered.data.astype(np.int64) - 1
    indices, indptr = (array.astype(np.int32) for array in (numbered.indices, numbered.indptr))
    shape = (int(numbered.shape[0]), int(numbered.shape[1]))
    return Sparse(operation.weight[index], indices, indptr, shape, bias, operation.learnable), index
