"""Shape and kind of every port of a graph."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from snnc.compiler.errors import AxisError, ConcatAxisError, PadError, UnconnectedError
from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.arrays.windows import output_shape
from snnc.compiler.ir.graph import Graph, Kind, Population, Shape, source_ports
from snnc.compiler.neurons.binary_values import is_binary
from snnc.compiler.neurons.expression import Expression, Symbol
from snnc.compiler.neurons.neuron import NeuronModel


@dataclass(frozen=True)
class Port:
    """Value at one output port of an operation, for one sample at one step."""

    shape: Shape
    kind: Kind


PortMap: TypeAlias = Mapping[tuple[str, str], Port]
"""(node, source port) -> Port; an Output has the port ``"in"`` for the recorded value."""


def port_map(graph: Graph) -> PortMap:
    """Return the shape and the kind of every port.

    A population's output is "spikes" if it is 0 before the first step, and then 0 or 1 by construction (or an unchanged input of this
    kind). The kind of an Input is declared. Concat, Flatten, Reshape, Slice, Pad, OneToOne without a weight, maxima, and an Add or Output
    with one input keep the kind. All other values are "values". A node to which no input or population leads raises an UnconnectedError. An
    operation that does not fit its input raises a ConcatAxisError, AxisError, PadError, WindowError or ChannelError.
    """
    shapes = _shapes(graph)
    kinds = _kinds(graph, shapes.keys())
    return {key: Port(shape, kinds[key]) for key, shape in shapes.items()}


def node_shapes(ports: PortMap) -> dict[str, Shape]:
    """Return the shape of the values of each node, which all its ports share."""
    return {name: port.shape for (name, _), port in ports.items()}


def size(shape: Shape) -> int:
    """Return the number of elements of `shape`."""
    return math.prod(shape)


def compatible(one: Shape, other: Shape) -> bool:
    """Return whether values of shape `one` can be read as `other`.

    Both must have the same number of elements. They are equal except for axes of size 1, or one of them has at most one axis.
    """
    if size(one) != size(other):
        return False
    squeezed = [tuple(n for n in shape if n != 1) for shape in (one, other)]
    return squeezed[0] == squeezed[1] or min(len(one), len(other)) <= 1


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _shapes(graph: Graph) -> dict[tuple[str, str], Shape]:
    """Return the shapes of all ports; a shape that depends on an input is derived as soon as the shape of the input is known."""
    shapes: dict[tuple[str, str], Shape] = {}
    for name in graph.names:
        operation = graph.operation(name)
        if isinstance(operation, ir.Input | Population):
            shapes.update({(name, port): operation.shape for port in source_ports(operation)})
        elif isinstance(operation, ir.Linear):
            shapes[name, "out"] = operation.weight.shape[:1]
        elif isinstance(operation, ir.Sparse):
            shapes[name, "out"] = operation.shape[:1]
        elif isinstance(operation, ir.Reshape):
            shapes[name, "out"] = operation.shape
    waiting = [n for n in graph.names if not isinstance(graph.operation(n), ir.Input | Population | ir.Linear | ir.Sparse | ir.Reshape)]
    while waiting:
        unresolved = []
        for name in waiting:
            shape = _derived_shape(graph, name, shapes)
            if shape is None:
                unresolved.append(name)
            else:
                shapes[name, "in" if isinstance(graph.operation(name), ir.Output) else "out"] = shape
        if len(unresolved) == len(waiting):
            raise UnconnectedError(f"the shape of {', '.join(map(repr, unresolved))} is undefined: no input or population leads to it.")
        waiting = unresolved
    return shapes


def _derived_shape(graph: Graph, name: str, known: Mapping[tuple[str, str], Shape]) -> Shape | None:
    """Return the shape of a node from the `known` shapes of ports; None if too few shapes of its sources are known."""
    shapes = {e.target_port: known[e.source, e.source_port] for e in graph.incoming(name) if (e.source, e.source_port) in known}
    if not shapes:
        return None
    source = next(iter(shapes.values()))
    match graph.operation(name):
        case ir.Flatten():
            return (size(source),)
        case ir.Conv() | ir.Pool() as operation:
            return output_shape(name, operation, source)
        case ir.Reduce() as operation:
            axes = reduced_axes(name, operation, source)
            return tuple(1 if i in axes else n for i, n in enumerate(source) if operation.keepdims or i not in axes)
        case ir.Slice(start=start, stop=stop) as operation:
            axis = sliced_axis(name, operation, source)
            return (*source[:axis], stop - start, *source[axis + 1 :])
        case ir.Pad() as operation:
            check_padding(name, operation, source)
            return tuple(before + n + after for n, (before, after) in zip(source, operation.padding, strict=True))
        case ir.OneToOne(weight=weight):
            return weight.shape if weight is not None and weight.ndim and not source else source
        case ir.Concat(axis=axis):
            return _concatenated(name, axis, shapes) if len(shapes) == len(graph.incoming(name)) else None
        case _:
            return max(shapes.values(), key=len)


def _concatenated(name: str, axis: int, shapes: Mapping[str, Shape]) -> Shape:
    parts = [shapes[port] for port in sorted(shapes, key=lambda port: (len(port), port))]
    first = parts[0]
    if not -len(first) <= axis < len(first):
        raise ConcatAxisError(f"the concatenation {name!r} has axis {axis}, but its first input has shape {first}; give one of its axes.")
    axis %= len(first)
    return (*first[:axis], sum(p[axis] if axis < len(p) else 1 for p in parts), *first[axis + 1 :])


def reduced_axes(name: str, operation: ir.Reduce, shape: Shape) -> tuple[int, ...]:
    """Return the axes of `shape` reduced by the node `name`, counted from the front."""
    axes = tuple(sorted(axis + len(shape) if axis < 0 else axis for axis in operation.axes))
    if not axes or len(set(axes)) < len(axes) or not 0 <= axes[0] <= axes[-1] < len(shape):
        raise AxisError(
            f"{name!r} reduces the axes {operation.axes} of an input of shape {shape}; give one or more of its axes, each once."
        )
    return axes


def sliced_axis(name: str, operation: ir.Slice, shape: Shape) -> int:
    """Return the axis of `shape` sliced by the node `name`, counted from the front."""
    if not -len(shape) <= operation.axis < len(shape):
        raise AxisError(f"{name!r} slices axis {operation.axis} of an input of shape {shape}; give one of its axes.")
    axis = operation.axis % len(shape)
    if not 0 <= operation.start < operation.stop <= shape[axis]:
        raise AxisError(
            f"{name!r} slices {operation.start} to {operation.stop} of axis {axis}, which is {shape[axis]} long; give 0 <= start < stop <= "
            f"{shape[axis]}."
        )
    return axis


def check_padding(name: str, operation: ir.Pad, shape: Shape) -> None:
    """Raise a PadError unless the node `name` has a padding of 0 or more before and after each axis of `shape`."""
    fits = len(operation.padding) == len(shape) and all(len(pair) == 2 and min(pair) >= 0 for pair in operation.padding)
    if not fits:
        raise PadError(
            f"{name!r} pads an input of shape {shape} by {operation.padding}; give {len(shape)} pairs (before, after) of 0 or more, "
            "one per axis."
        )


# ---- kinds -----------------------------------------------------------------------------------------------------------


def _kinds(graph: Graph, ports: Collection[tuple[str, str]]) -> dict[tuple[str, str], Kind]:
    """Return the kinds of `ports`, each derived from those of its sources; a cycle assumes "values" for the port that it leads back to."""
    known: dict[tuple[str, str], Kind] = {}

    def of(name: str, port: str) -> Kind:
        if (name, port) not in known:
            known[name, port] = "values"
            known[name, port] = derived(name, port)
        return known[name, port]

    def derived(name: str, port: str) -> Kind:
        match graph.operation(name):
            case ir.Input(kind=kind):
                return kind
            case Population(model=model) as population:
                if population.before(port).any():
                    return "values"  # delayed edges read it before the first step
                spiking = {p for p in model.inputs if of_source(name, p) == "spikes"}
                values, binary = _final_values(model, spiking)
                value = values.get(port)
                if isinstance(value, Symbol) and value.name in model.inputs:
                    return of_source(name, value.name)
                return "spikes" if port in binary else "values"
            case ir.Concat():
                kinds = {of(e.source, e.source_port) for e in graph.incoming(name)}
                return "spikes" if kinds == {"spikes"} else "values"
            case ir.Flatten() | ir.Reshape() | ir.Slice() | ir.Pad() | ir.Add() | ir.Output():
                return of_source(name, None)
            case ir.OneToOne(weight=None) | ir.Pool(kind="max") | ir.Reduce(kind="max"):
                return of_source(name, None)
        return "values"

    def of_source(name: str, port: str | None) -> Kind:
        edges = graph.incoming(name, port)
        return of(edges[0].source, edges[0].source_port) if len(edges) == 1 else "values"

    return {key: of(*key) for key in ports}


def _final_values(model: NeuronModel, spiking: Collection[str]) -> tuple[dict[str, Expression], set[str]]:
    """Return the last value of each assigned name, and the names whose last value is 0 or 1; the inputs `spiking` are spikes."""
    values: dict[str, Expression] = {}
    binary: set[str] = set(spiking)
    for assignment in model.equations:
        value = assignment.value
        if isinstance(value, Symbol):
            value = values.get(value.name, value) if isinstance(values.get(value.name), Symbol) else value
        if is_binary(value, binary):
            binary.add(assignment.target)
        else:
            binary.discard(assignment.target)
        values[assignment.target] = value
    return values, binary
