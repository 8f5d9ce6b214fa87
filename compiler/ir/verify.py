"""The checks of a graph before and after every pass: one function per check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

import networkx as nx
import numpy as np

from snnc.compiler.errors import (
    ConcatAxisError,
    CycleWithoutDelayError,
    InvalidValueError,
    NotFiniteError,
    ParameterShapeError,
    ReshapeError,
    SeveralSourcesError,
    ShapeMismatchError,
    StateInputError,
    UnconnectedError,
    UnknownNodeError,
)
from snnc.compiler.ir.arrays.sizes import check_size
from snnc.compiler.ir.arrays.sparse import check_pattern
from snnc.compiler.ir.graph import (
    Add,
    Array,
    Concat,
    Conv,
    Edge,
    Graph,
    Input,
    Linear,
    OneToOne,
    Output,
    Pool,
    PoolKind,
    Population,
    Reduce,
    ReduceKind,
    Reshape,
    Scale,
    Shape,
    Sparse,
    source_ports,
)
from snnc.compiler.ir.shapes import PortMap, compatible, port_map, size


def verify(graph: Graph, *, steps: int | None = None, batch: int | None = None) -> PortMap:
    """Check `graph` and return its ports.

    Parameters
    ----------
    graph
        Any graph, from a front end or between two passes.
    steps, batch
        Numbers of the compile options, checked if given.

    Raises
    ------
    GraphError
        One of its subclasses, each for one check.
    """
    for label, number in (("steps", graph.steps), ("steps", steps), ("batch", batch)):
        if number is not None and number < 1:
            raise InvalidValueError(f"{label} is {number}; a network runs at least 1 step on at least 1 sample.")
    _check_ends(graph)
    _check_windows(graph, steps or graph.steps)
    _check_ports(graph)
    _check_sizes(graph)
    _check_connected(graph)
    _check_values(graph)
    _check_cycles(graph)
    ports = port_map(graph)
    _check_edges(graph, ports)
    _check_states(graph)
    return ports


def _check_ends(graph: Graph) -> None:
    for kind, article in ((Input, "input"), (Output, "output")):
        if next(graph.of_type(kind), None) is None:
            raise UnconnectedError(f"the network {graph.name!r} has no {article}; add one.")


def _check_windows(graph: Graph, steps: int | None) -> None:
    for name, output in graph.of_type(Output):
        start, stop = output.start, output.stop
        if start < 0 or (stop is not None and stop <= start) or (steps is not None and max(start + 1, stop or 0) > steps):
            until = "to the end" if stop is None else f"to {stop}"
            has = "" if steps is None else f"; the sequence has {steps}"
            raise InvalidValueError(f"the output {name!r} reads the steps from {start} {until}{has}. Give 0 <= start < stop <= steps.")


def _check_ports(graph: Graph) -> None:
    for edge in graph.edges:
        known = source_ports(graph.operation(edge.source))
        if isinstance(graph.operation(edge.source), Output) or edge.source_port not in known:
            raise UnknownNodeError(f"{_text(edge)} leaves {edge.source!r} by port {edge.source_port!r}; it has {', '.join(known)}.")
        target = graph.operation(edge.target)
        wanted = _target_ports(graph, edge.target)
        if isinstance(target, Input) or edge.target_port not in wanted:
            raise UnknownNodeError(
                f"{_text(edge)} enters {edge.target!r} by port {edge.target_port!r}; it has {', '.join(wanted) or 'no input port'}."
            )
        if edge.delay < 0:
            raise InvalidValueError(f"{_text(edge)} has delay {edge.delay}; a delay is 0 or more steps.")


def _target_ports(graph: Graph, name: str) -> tuple[str, ...]:
    match graph.operation(name):
        case Population(model=model):
            return model.inputs
        case Input():
            return ()
        case Concat():
            return tuple(map(str, range(len(graph.incoming(name)))))
        case _:
            return ("in",)


def _check_sizes(graph: Graph) -> None:
    for name in graph.names:
        match graph.operation(name):
            case Input(shape=shape) | Population(shape=shape) | Reshape(shape=shape):
                check_size(shape, repr(name))
            case Linear() | Conv() as operation:
                _check_weight(name, operation)
            case Sparse() as sparse:
                for length in sparse.shape:
                    check_size((length,), f"the weight of {name!r}")
                check_pattern(name, sparse)
                _check_bias(name, sparse.bias, sparse.shape)
            case Pool(kind=kind) if kind not in get_args(PoolKind):
                raise InvalidValueError(f"{name!r} pools by {kind!r}; it is one of {', '.join(get_args(PoolKind))}.")
            case Reduce(kind=kind) if kind not in get_args(ReduceKind):
                raise InvalidValueError(f"{name!r} reduces by {kind!r}; it is one of {', '.join(get_args(ReduceKind))}.")
            case Scale(weight=weight, bias=bias):
                check_size(weight.shape, f"the weight of {name!r}")
                if bias is not None:
                    check_size(bias.shape, f"the bias of {name!r}")
            case OneToOne(weight=weight) if weight is not None:
                check_size(weight.shape, f"the weight of {name!r}")
    for name, population in graph.of_type(Population):
        _check_population(name, population)


def _check_weight(name: str, operation: Linear | Conv) -> None:
    weight, bias = operation.weight, operation.bias
    wanted, axes = ("[outputs, inputs]", (2,)) if isinstance(operation, Linear) else ("[outputs, inputs / groups, *kernel]", (3, 4))
    if weight.ndim not in axes:
        raise ParameterShapeError(f"the weight of {name!r} has shape {weight.shape}; it must be {wanted}.")
    check_size(weight.shape, f"the weight of {name!r}")
    _check_bias(name, bias, weight.shape)


def _check_bias(name: str, bias: Array | None, weight: Shape) -> None:
    if bias is not None and bias.shape != weight[:1]:
        raise ParameterShapeError(f"the bias of {name!r} has shape {bias.shape}; its weight {weight} needs {weight[:1]}.")


def _check_population(name: str, population: Population) -> None:
    model = population.model
    for what, values, known in (("parameter", population.parameters, model.parameters), ("state", population.initial, model.states)):
        for key, value in values.items():
            if key not in known:
                raise ParameterShapeError(
                    f"{name!r} gives the {what} {key!r}, which '{model.name}' does not have; it has {', '.join(known)}."
                )
            if value.shape not in ((), population.shape):
                raise ParameterShapeError(
                    f"the {what} {key!r} of {name!r} has shape {value.shape}; give one number or one a neuron, {population.shape}."
                )
    unknown = sorted(population.learnable - set(model.parameters))
    if unknown:
        raise ParameterShapeError(
            f"{name!r} is to learn {', '.join(unknown)}, no parameter of '{model.name}'; it has {', '.join(model.parameters)}."
        )


def _check_connected(graph: Graph) -> None:
    for name in graph.names:
        operation = graph.operation(name)
        for port in () if isinstance(operation, Input) else _target_ports(graph, name) or ("0",):
            edges = graph.incoming(name, port)
            if not edges and not (isinstance(operation, Population) and not operation.model.inputs):
                raise UnconnectedError(f"nothing leads to port {port!r} of {name!r}; connect it.")
            if len(edges) > 1 and not isinstance(operation, Add | Population):
                raise SeveralSourcesError(
                    f"{len(edges)} edges meet at port {port!r} of {name!r} (from {', '.join(repr(e.source) for e in edges)}); "
                    "sum them with Add."
                )
        if not graph.outgoing(name) and not isinstance(operation, Output | Population):
            raise UnconnectedError(f"{name!r} ({type(operation).__name__}) leads nowhere; connect it or leave it out.")


def _check_values(graph: Graph) -> None:
    for name, what, value in _arrays(graph):
        finite = np.isfinite(value)
        if not finite.all():
            index = tuple(int(i) for i in np.argwhere(~finite)[0]) if value.ndim else ()
            raise NotFiniteError(
                f"{what} of {name!r} is {value[index]} at index {list(index)} ({int((~finite).sum())} of {value.size} are not finite)."
            )


def _arrays(graph: Graph) -> Iterator[tuple[str, str, Array]]:
    for name in graph.names:
        match graph.operation(name):
            case Linear() | Sparse() | Conv() | Scale() as operation:
                weight, bias = operation.weight, operation.bias
                yield name, "the weight", weight
                if bias is not None:
                    yield name, "the bias", bias
            case OneToOne(weight=weight) if weight is not None:
                yield name, "the weight", weight
            case Population(model=model, parameters=parameters, initial=initial):
                yield from _named(name, "the parameter", {**model.parameters, **parameters})
                yield from _named(name, "the initial state", {**model.states, **initial})


def _named(node: str, what: str, values: Mapping[str, Array | float]) -> Iterator[tuple[str, str, Array]]:
    for key, value in values.items():
        yield node, f"{what} {key!r}", np.asarray(value)


def _check_cycles(graph: Graph) -> None:
    immediate: nx.DiGraph[str] = nx.DiGraph()
    immediate.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    if nx.is_directed_acyclic_graph(immediate):
        return
    cycle = [source for source, _ in nx.find_cycle(immediate)]
    path = " -> ".join([*cycle, cycle[0]])
    raise CycleWithoutDelayError(
        f"no order of evaluation exists for the cycle {path}: give one of its connections a delay of 1 step or more."
    )


def _check_edges(graph: Graph, ports: PortMap) -> None:
    for edge in graph.edges:
        source = ports[edge.source, edge.source_port].shape
        _check_shape_change(graph, edge, source)
        wanted = _wanted(graph, edge, ports)
        if wanted is not None and not compatible(source, wanted):
            raise ShapeMismatchError(
                f"{edge.source!r} gives shape {source} ({size(source)} values), but {edge.target!r} takes {wanted} ({size(wanted)} values)."
            )
    for (name, _), port in ports.items():
        check_size(port.shape, repr(name))


def _check_shape_change(graph: Graph, edge: Edge, source: Shape) -> None:
    """A Reshape must keep the number of values, a Scale its input's shape."""
    match graph.operation(edge.target):
        case Reshape(shape=shape) if size(shape) != size(source):
            raise ReshapeError(
                f"{edge.target!r} makes {shape} ({size(shape)} values) of {edge.source!r}, which has {source} ({size(source)})."
            )
        case Scale(weight=weight, bias=bias):
            for what, array in (("weight", weight), ("bias", bias)):
                if array is not None and not broadcastable(array.shape, source):
                    raise ParameterShapeError(
                        f"the {what} of {edge.target!r} has shape {array.shape}, which does not broadcast to its input's, {source}."
                    )


def broadcastable(shape: Shape, to: Shape) -> bool:
    """Return whether an array of `shape` can be broadcast to `to` by NumPy's rules."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1], strict=False))


def _wanted(graph: Graph, edge: Edge, ports: PortMap) -> Shape | None:
    match graph.operation(edge.target):
        case Population(shape=shape):
            return shape
        case Linear(weight=weight):
            return weight.shape[1:]
        case Sparse(shape=shape):
            return shape[1:]
        case OneToOne(weight=weight) if weight is not None and weight.ndim:
            return weight.shape
        case Add():
            return ports[edge.target, "out"].shape
        case Concat(axis=axis):
            _check_concat(graph, edge, ports, axis)
            return None
        case _:
            return None


def _check_concat(graph: Graph, edge: Edge, ports: PortMap, axis: int) -> None:
    """Parts must agree except for the axis, and be consecutive in memory."""
    whole, part = ports[edge.target, "out"].shape, ports[edge.source, edge.source_port].shape
    axis %= len(whole)
    if len(part) != len(whole) or any(a != b for i, (a, b) in enumerate(zip(part, whole, strict=False)) if i != axis):
        raise ShapeMismatchError(
            f"{edge.source!r} gives shape {part}, which does not fit into {edge.target!r} of shape {whole} along axis {axis}."
        )
    if size(whole[:axis]) != 1 and len(graph.incoming(edge.target)) > 1:
        raise ConcatAxisError(
            f"the concatenation {edge.target!r} of shape {whole} is along axis {axis}; snnc takes the first axis longer than 1 only, "
            "so that the parts are contiguous. Move that axis to the front."
        )


def _check_states(graph: Graph) -> None:
    for label, ref in graph.state_inputs.items():
        operation = graph.operation(ref.node) if ref.node in graph.nx else None
        if not isinstance(operation, Population):
            raise StateInputError(f"the state {label!r} belongs to {ref.node!r}, which is no population of the network.")
        if ref.name not in source_ports(operation):
            raise StateInputError(
                f"the state {label!r} stands for {ref.name!r} of {ref.node!r}, which has {', '.join(source_ports(operation))}."
            )


def _text(edge: Edge) -> str:
    return f"the connection {edge.source!r} -> {edge.target!r}"
