"""Infer the input and output shape of each node, without batch and time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.arrays.sizes import check_size
from snnc.compiler.ir.graph import Shape
from snnc.compiler.ir.shapes import size
from snnc.frontends.nir.errors import NirFieldError, NirShapeError
from snnc.frontends.nir.reading.fields import ELEMENTWISE, NirNode
from snnc.frontends.nir.reading.flatten import JUNCTION, Flat
from snnc.frontends.nir.windows import check_bias, leaving_shape


@dataclass
class Shapes:
    """Input and output shape of each node."""

    entering: dict[str, Shape] = field(default_factory=dict)
    leaving: dict[str, Shape] = field(default_factory=dict)


def infer(flat: Flat) -> Shapes:
    """Infer and check the shapes of all nodes.

    Raises a NirShapeError if they do not match or cannot be inferred, and a NirFieldError if a declared shape is not a list of sizes.
    """
    shapes = Shapes()
    # When `waiting` is empty, nodes in `stuck` are inferred from a part of their inputs; `tried` of them have failed in a row.
    waiting, stuck, tried = deque(flat.nodes), deque(flat.nodes), 0
    while waiting or tried < len(stuck):
        wait = bool(waiting)
        name = waiting.popleft() if waiting else stuck.popleft()
        if name in shapes.entering:
            continue
        if _infer_node(name, flat, shapes, wait=wait):
            waiting.extend([*flat.out_of(name), *(s for s in flat.into(name) if flat.nodes[s].type == "Input")])
            tried = 0
        elif not wait:
            stuck.append(name)
            tried += 1
    unknown = [name for name in flat.nodes if name not in shapes.entering]
    if unknown:
        raise NirShapeError(
            f"the shape of {', '.join(map(repr, unknown[:10]))} cannot be inferred: neither their fields nor their sources define it; "
            "add the shape to the Input, or one value per neuron to the neurons."
        )
    for source, target in flat.edges:
        _check_edge(flat, shapes, source, target)
    return shapes


def _infer_node(name: str, flat: Flat, shapes: Shapes, *, wait: bool) -> bool:
    """Infer the shapes of a node, if possible; with `wait`, only if all its inputs are known or the node itself defines its shape."""
    node = flat.nodes[name]
    sources = flat.into(name)
    known = [shapes.leaving[s] for s in sources if s in shapes.leaving]
    if wait and len(known) < len(sources) and node.type not in ("Affine", "Linear", "Output"):
        return False
    entering = _entering(node, known, flat, name, shapes)
    if entering is None:
        return False
    leaving = _leaving(node, entering)
    try:
        for shape in (entering, leaving):
            check_size(shape, f"{node.path!r} ({node.type})")
    except SnncError as error:
        raise NirShapeError(error.text) from None
    shapes.entering[name], shapes.leaving[name] = entering, leaving
    return True


def _entering(node: NirNode, known: Sequence[Shape], flat: Flat, name: str, shapes: Shapes) -> Shape | None:
    """Return the input shape of `node`, from its fields or its neighbours; None if it is unknown so far."""
    if node.type in ("Affine", "Linear"):
        return _matrix_input(node)
    if node.type in ELEMENTWISE:
        shape = _field_shape(node)
        if size(shape) > 1 and not any(size(k) == size(shape) for k in known):
            return shape
        return max(known, key=len) if known else None
    if node.type in ("Input", "Output"):
        declared = _declared(node)
        if declared is not None:
            return _without_batch(name, declared, flat) if node.type == "Input" else declared
        after = [shapes.entering[t] for t in flat.out_of(name) if t in shapes.entering]
        neighbours = after if node.type == "Input" else known
        return neighbours[0] if neighbours else None
    if node.type == JUNCTION:  # an Input or Output of a nested graph
        return max(known, key=len) if known else _declared(node)
    return max(known, key=len) if known else _convolution_input(node)


def _convolution_input(node: NirNode) -> Shape | None:
    declared = node.fields.get("input_shape")
    rank = node.fields["weight"].ndim - 2 if "weight" in node.fields else 0
    if declared is None or declared.size != rank:
        return None
    return (_channels(node), *(int(n) for n in declared.reshape(-1)))


def _channels(node: NirNode) -> int:
    return int(node.fields["weight"].shape[1] * node.fields["groups"].reshape(-1)[0])


def _matrix_input(node: NirNode) -> Shape:
    weight = node.fields["weight"]
    if weight.ndim != 2:
        raise NirShapeError(f"the weight of {node.path!r} ({node.type}) has the shape {list(weight.shape)}; snnc reads [outputs, inputs].")
    check_bias(node)
    return weight.shape[1:]


def _field_shape(node: NirNode) -> Shape:
    """Return the common shape of an elementwise node's fields; single values fit any shape."""
    shape: Shape = ()
    for name, array in node.fields.items():
        if array.size > 1 and size(shape) > 1 and array.shape != shape:
            raise NirShapeError(
                f"{name} of {node.path!r} ({node.type}) has the shape {list(array.shape)}, but its other fields have {list(shape)}; "
                "they must be equal."
            )
        if array.size > size(shape) or (array.size == 1 and len(array.shape) > len(shape) and size(shape) == 1):
            shape = array.shape
    return shape


def _declared(node: NirNode) -> Shape | None:
    shape = node.fields.get("shape")
    if shape is None or shape.size == 0:
        return None if shape is None else ()
    if shape.ndim > 1:
        raise NirFieldError(f"the shape of {node.path!r} ({node.type}) is an array of {shape.ndim} dimensions; a list of sizes is needed.")
    return tuple(int(n) for n in np.atleast_1d(shape))


def _without_batch(name: str, declared: Shape, flat: Flat) -> Shape:
    """Return the declared shape of an Input without leading axes of size 1, an exporter's batch, unless a reader expects them."""
    readers = [_readable(flat.nodes[target], declared) for target in flat.out_of(name)]
    readable = readers[0] if readers and readers[0] and readers.count(readers[0]) == len(readers) else declared
    if readable == declared or declared != (*(1,) * (len(declared) - len(readable)), *readable):
        return declared
    flat.notes.append(f"{name!r} declares {list(declared)}, which begins with the exporter's batch of 1; it is read as {list(readable)}.")
    return readable


def _readable(node: NirNode, declared: Shape) -> Shape:
    """Return the shape that `node` requires; empty if it reads any shape.

    A convolution requires its number of channels; its other axes are the last ones of `declared`.
    """
    match node.type:
        case "Affine" | "Linear":
            return _matrix_input(node)
        case "Conv1d" | "Conv2d" if (rank := node.fields["weight"].ndim - 2) in (1, 2):
            return (_channels(node), *declared[len(declared) - rank :])
        case _:
            return _field_shape(node) if node.type in ELEMENTWISE else ()


def _leaving(node: NirNode, entering: Shape) -> Shape:
    match node.type:
        case "Affine" | "Linear":
            return tuple(node.fields["weight"].shape[:1])
        case "Conv1d" | "Conv2d" | "SumPool2d" | "AvgPool2d":
            return leaving_shape(node, entering)
        case "Flatten":
            return _flattened(node, entering)
        case _:
            return entering


def _flattened(node: NirNode, entering: Shape) -> Shape:
    start, end = (int(node.fields[name].reshape(-1)[0]) for name in ("start_dim", "end_dim"))
    rank = len(entering)
    first, last = (n + rank if n < 0 else n for n in (start, end))
    if rank <= 1:
        return (size(entering),)
    if not 0 <= first < rank or not first <= last < rank:
        raise NirShapeError(
            f"{node.path!r} (Flatten) joins the axes {start} to {end} of {list(entering)}; give axes of one sample, from 0, in order."
        )
    return (*entering[:first], size(entering[first : last + 1]), *entering[last + 1 :])


def _check_edge(flat: Flat, shapes: Shapes, source: str, target: str) -> None:
    leaving, entering = shapes.leaving[source], shapes.entering[target]
    if leaving == entering:
        return
    ends = f"{source!r} ({flat.nodes[source].type}) -> {target!r} ({flat.nodes[target].type})"
    if size(leaving) != size(entering):
        raise NirShapeError(
            f"{ends}: the first returns {list(leaving)} ({size(leaving)} values), "
            f"but the second reads {list(entering)} ({size(entering)} values)."
        )
    flat.notes.append(f"{ends}: values of shape {list(leaving)} are read as {list(entering)}, in the same order.")
