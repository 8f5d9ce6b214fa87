"""Checks of a graph, one function per check: run on what a frontend read, and after each pass that changed the graph."""

from __future__ import annotations

from collections.abc import Iterator
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
from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.arrays.sizes import check_size
from snnc.compiler.ir.arrays.sparse import check_pattern
from snnc.compiler.ir.graph import Array, Edge, Graph, Population, Shape, source_ports
from snnc.compiler.ir.shapes import PortMap, compatible, port_map, size


def verify(graph: Graph, *, steps: int | None = None) -> PortMap:
    """Check `graph`, and return the shapes and kinds of its ports; `steps` is the number of steps in the compile options, if they set it.

    Each check raises its own subclass of GraphError.
    """
    for number in (graph.steps, steps):
        if number is not None and number < 1:
            raise InvalidValueError(f"steps is {number}; a network runs at least 1 step on at least 1 sample.")
    _check_has_ends(graph)
    _check_output_steps(graph, steps or graph.steps)
    _check_ports(graph)
    _check_sizes(graph)
    _check_connected(graph)
    _check_values(graph)
    _check_cycles(graph)
    ports = port_map(graph)
    _check_edges(graph, ports)
    _check_states(graph)
    return ports


def _check_has_ends(graph: Graph) -> None:
    for kind, word in ((ir.Input, "input"), (ir.Output, "output")):
        if next(graph.of_type(kind), None) is None:
            raise UnconnectedError(f"the network {graph.name!r} has no {word}; add one.")


def _check_output_steps(graph: Graph, steps: int | None) -> None:
    for name, output in graph.of_type(ir.Output):
        start, stop = output.start, output.stop
        if start < 0 or (stop is not None and stop <= start) or (steps is not None and max(start + 1, stop or 0) > steps):
            until = "to the end" if stop is None else f"to {stop}"
            has = "" if steps is None else f"; the sequence has {steps}"
            raise InvalidValueError(f"the output {name!r} reads the steps from {start} {until}{has}. Give 0 <= start < stop <= steps.")


def _check_ports(graph: Graph) -> None:
    for edge in graph.edges:
        known = source_ports(graph.operation(edge.source))
        if isinstance(graph.operation(edge.source), ir.Output) or edge.source_port not in known:
            raise UnknownNodeError(f"{_text(edge)} leaves {edge.source!r} by port {edge.source_port!r}; it has {', '.join(known)}.")
        target = graph.operation(edge.target)
        expected = _target_ports(graph, edge.target)
        if isinstance(target, ir.Input) or edge.target_port not in expected:
            raise UnknownNodeError(
                f"{_text(edge)} enters {edge.target!r} by port {edge.target_port!r}; it has {', '.join(expected) or 'no input port'}."
            )
        if edge.delay < 0:
            raise InvalidValueError(f"{_text(edge)} has delay {edge.delay}; a delay must be 0 or more steps.")


def _target_ports(graph: Graph, name: str) -> tuple[str, ...]:
    match graph.operation(name):
        case Population(model=model):
            return model.inputs
        case ir.Input():
            return ()
        case ir.Concat():
            return tuple(map(str, range(len(graph.incoming(name)))))
        case _:
            return ("in",)


def _check_sizes(graph: Graph) -> None:
    """Check the shapes of operations and of their weights, before memory is allocated."""
    for name in graph.names:
        match graph.operation(name):
            case ir.Input(shape=shape) | Population(shape=shape) | ir.Reshape(shape=shape):
                check_size(shape, repr(name))
            case ir.Linear() | ir.Conv() as operation:
                _check_weight(name, operation)
            case ir.Sparse() as sparse:
                for length in sparse.shape:
                    check_size((length,), f"the weight of {name!r}")
                check_pattern(name, sparse)
                _check_bias(name, sparse.bias, sparse.shape)
            case ir.Pool(kind=kind) if kind not in get_args(ir.PoolKind):
                raise InvalidValueError(f"{name!r} pools by {kind!r}; it must be one of {', '.join(get_args(ir.PoolKind))}.")
            case ir.Reduce(kind=kind) if kind not in get_args(ir.ReduceKind):
                raise InvalidValueError(f"{name!r} reduces by {kind!r}; it must be one of {', '.join(get_args(ir.ReduceKind))}.")
            case ir.Scale(weight=weight, bias=bias):
                check_size(weight.shape, f"the weight of {name!r}")
                if bias is not None:
                    check_size(bias.shape, f"the bias of {name!r}")
            case ir.OneToOne(weight=weight) if weight is not None:
                check_size(weight.shape, f"the weight of {name!r}")
    for name, population in graph.of_type(Population):
        _check_population(name, population)


def _check_weight(name: str, operation: ir.Linear | ir.Conv) -> None:
    weight, bias = operation.weight, operation.bias
    expected, axes = ("[outputs, inputs]", (2,)) if isinstance(operation, ir.Linear) else ("[outputs, inputs / groups, *kernel]", (3, 4))
    if weight.ndim not in axes:
        raise ParameterShapeError(f"the weight of {name!r} has shape {weight.shape}; it must be {expected}.")
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
                    f"{name!r} sets the {what} {key!r}, which '{model.name}' does not have; it has {', '.join(known)}."
                )
            if value.shape not in ((), population.shape):
                raise ParameterShapeError(
                    f"the {what} {key!r} of {name!r} has shape {value.shape}; give one number, or one per neuron: {population.shape}."
                )
    unknown = sorted(population.learnable - set(model.parameters))
    if unknown:
        raise ParameterShapeError(
            f"{name!r} cannot learn {', '.join(unknown)}: '{model.name}' has no such parameter; it has {', '.join(model.parameters)}."
        )


def _check_connected(graph: Graph) -> None:
    for name in graph.names:
        operation = graph.operation(name)
        # A Concat without sources has no port yet; it needs port "0".
        for port in () if isinstance(operation, ir.Input) else _target_ports(graph, name) or ("0",):
            edges = graph.incoming(name, port)
            if not edges and not (isinstance(operation, Population) and not operation.model.inputs):
                raise UnconnectedError(f"port {port!r} of {name!r} has no source; connect it.")
            if len(edges) > 1 and not isinstance(operation, ir.Add | Population):
                raise SeveralSourcesError(
                    f"{len(edges)} edges lead to port {port!r} of {name!r} (from {', '.join(repr(e.source) for e in edges)}); "
                    "sum them with Add."
                )
        if not graph.outgoing(name) and not isinstance(operation, ir.Output | Population):
            raise UnconnectedError(f"{name!r} ({type(operation).__name__}) has no target; connect or remove it.")


def _check_values(graph: Graph) -> None:
    for name, what, value in _arrays(graph):
        finite = np.isfinite(value)
        if not finite.all():
            index = tuple(int(i) for i in np.argwhere(~finite)[0]) if value.ndim else ()
            raise NotFiniteError(
                f"{what} of {name!r} is {value[index]} at index {list(index)} ({int((~finite).sum())} of {value.size} are not finite)."
            )


def _arrays(graph: Graph) -> Iterator[tuple[str, str, Array]]:
    """Yield (name of the node, description of the array, array) for all arrays of the graph."""
    for name in graph.names:
        match graph.operation(name):
            case ir.Linear() | ir.Sparse() | ir.Conv() | ir.Scale() as operation:
                weight, bias = operation.weight, operation.bias
                yield name, "the weight", weight
                if bias is not None:
                    yield name, "the bias", bias
            case ir.OneToOne(weight=weight) if weight is not None:
                yield name, "the weight", weight
            case Population(model=model, parameters=parameters, initial=initial):
                for what, values in (("parameter", {**model.parameters, **parameters}), ("initial state", {**model.states, **initial})):
                    for key, value in values.items():
                        yield name, f"the {what} {key!r}", np.asarray(value)


def _check_cycles(graph: Graph) -> None:
    immediate: nx.DiGraph[str] = nx.DiGraph()
    immediate.add_edges_from((e.source, e.target) for e in graph.edges if e.delay == 0)
    if nx.is_directed_acyclic_graph(immediate):
        return
    cycle = [source for source, _ in nx.find_cycle(immediate)]
    path = " -> ".join([*cycle, cycle[0]])
    raise CycleWithoutDelayError(f"the cycle {path} has no order of evaluation; give one of its connections a delay of 1 step or more.")


def _check_edges(graph: Graph, ports: PortMap) -> None:
    for edge in graph.edges:
        source = ports[edge.source, edge.source_port].shape
        _check_target(graph, edge, source, ports)
        expected = _expected_shape(graph, edge, ports)
        if expected is not None and not compatible(source, expected):
            raise ShapeMismatchError(
                f"{edge.source!r} has shape {source} ({size(source)} values), but {edge.target!r} expects {expected} "
                f"({size(expected)} values)."
            )
    for (name, _), port in ports.items():
        check_size(port.shape, repr(name))


def _check_target(graph: Graph, edge: Edge, source: Shape, ports: PortMap) -> None:
    match graph.operation(edge.target):
        case ir.Reshape(shape=shape) if size(shape) != size(source):
            raise ReshapeError(
                f"{edge.target!r} reshapes {edge.source!r} from {source} ({size(source)} values) to {shape} ({size(shape)} values)."
            )
        case ir.Scale(weight=weight, bias=bias):
            for what, array in (("weight", weight), ("bias", bias)):
                if array is not None and not broadcastable(array.shape, source):
                    raise ParameterShapeError(
                        f"the {what} of {edge.target!r} has shape {array.shape}, which does not broadcast to its input's, {source}."
                    )
        case ir.Concat(axis=axis):
            _check_concat(graph, edge, source, ports[edge.target, "out"].shape, axis)


def broadcastable(shape: Shape, to: Shape) -> bool:
    """Return whether an array of `shape` can be broadcast to `to` by NumPy's rules."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1], strict=False))


def _expected_shape(graph: Graph, edge: Edge, ports: PortMap) -> Shape | None:
    """Return the shape that the target of an edge expects; None if any shape is accepted here."""
    match graph.operation(edge.target):
        case Population(shape=shape):
            return shape
        case ir.Linear(weight=weight):
            return weight.shape[1:]
        case ir.Sparse(shape=shape):
            return shape[1:]
        case ir.OneToOne(weight=weight) if weight is not None and weight.ndim:
            return weight.shape
        case ir.Add():
            return ports[edge.target, "out"].shape
    return None


def _check_concat(graph: Graph, edge: Edge, part: Shape, total: Shape, axis: int) -> None:
    axis %= len(total)
    if len(part) != len(total) or any(a != b for i, (a, b) in enumerate(zip(part, total, strict=False)) if i != axis):
        raise ShapeMismatchError(
            f"{edge.source!r} has shape {part}, which does not fit into {edge.target!r} of shape {total} along axis {axis}."
        )
    if size(total[:axis]) != 1 and len(graph.incoming(edge.target)) > 1:
        raise ConcatAxisError(
            f"the concatenation {edge.target!r} of shape {total} is along axis {axis}; snnc concatenates along "
            "the first axis longer than 1 only, so that the parts are contiguous. Move that axis to the front."
        )


def _check_states(graph: Graph) -> None:
    for label, ref in graph.state_inputs.items():
        operation = graph.operation(ref.node) if ref.node in graph.nx else None
        if not isinstance(operation, Population):
            raise StateInputError(f"the state {label!r} belongs to {ref.node!r}, which is not a population of the network.")
        if ref.name not in source_ports(operation):
            raise StateInputError(
                f"the state {label!r} refers to {ref.name!r} of {ref.node!r}, which has {', '.join(source_ports(operation))}."
            )


def _text(edge: Edge) -> str:
    return f"the connection {edge.source!r} -> {edge.target!r}"
