"""One recovered time step: its values (:class:`~snnc.frontends.onnx.reroll.roll.StepClass`), with their shapes and batch axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import networkx as nx
import numpy as np

from snnc.compiler.ir.graph import Readout
from snnc.frontends.common.functions import ELEMENTWISE
from snnc.frontends.onnx.errors import NotYetError, StepGraphError, TimeMixingError, TimeVaryingError
from snnc.frontends.onnx.flattening.node import Array, GatherMap, Node, Shape
from snnc.frontends.onnx.reroll.roll import Const, InputRef, Operand, Ref, StepClass, delayed

_LAYERS: Final = ("linear", "conv", "pool", "reduce", "reshape", "slice", "concat", "gather")
"""Operations, other than elementwise ones, that a graph can express."""
_UNKNOWN: Final = -1
"""Batch axis that has not been derived yet."""


@dataclass(frozen=True)
class Result:
    """An output of the file, which records a value of the step at the steps ``start <= t < stop``, or without `stop` to the end."""

    name: str
    value: Operand
    readout: Readout
    time_axis: int | None
    """Axis along which the output stacks steps."""
    shape: Shape  # shape of one step, or of the reduction, in the file's layout: all axes except time
    rows: tuple[Node, ...] = ()  # the file's values at all steps, if the output stacks them
    start: int = 0
    stop: int | None = None


class RecoveredStep:
    """Classes of one step, and properties derived from their shapes.

    `axes` contains the time axis of each input that has one. If the inputs are `batched`, the first axis other than time is the batch,
    unless it is the only one.
    """

    def __init__(self, classes: list[StepClass], axes: Mapping[str, int], results: list[Result], batched: bool = True) -> None:
        self.classes = classes
        self.axes = axes
        self.batched = batched
        self.results = results
        self.batch = _batches(self)
        """Batch axis of each class, derived from those of the inputs; None without one."""
        self.samples = [self.sample(c.shape, self.batch[c.id]) for c in classes]
        """Shape of one sample of each class, without axes of size 1."""

    def changed(self, classes: list[StepClass], results: list[Result] | None = None) -> RecoveredStep:
        """Return a step with other classes and, if given, other results."""
        return RecoveredStep(classes, self.axes, results or self.results, self.batched)

    def input_batch(self, ref: InputRef) -> int | None:
        """Return the batch axis of an input at one step; its time axis, if any, has size 1."""
        axis = self.axes.get(ref.name)
        if not self.batched or len(ref.shape) < (2 if axis is None else 3):
            return None
        return 1 if axis == 0 else 0

    def sample(self, shape: Shape, batch: int | None) -> Shape:
        """Return the shape of one sample, without axes of size 1."""
        remaining = tuple(d for k, d in enumerate(shape) if k != batch and d != 1)
        return remaining or (1,)

    def operand_sample(self, operand: Operand) -> Shape:
        """Return the shape of one sample of an operand, without axes of size 1; the shape of a constant is returned unchanged."""
        return operand.value.shape if isinstance(operand, Const) else self.sample(*self.shape_and_batch(operand))

    def full_shape(self, operand: Operand) -> Shape:
        """Return the shape of one sample of an operand, with axes of size 1."""
        shape, batch = self.shape_and_batch(operand)
        return tuple(d for k, d in enumerate(shape) if k != batch) or (1,)

    def graph_shape(self, cls: int) -> Shape:
        """Return the shape of a class's values in the graph: the axes after the batch axis.

        Without a batch axis, or if an axis before it is larger than 1, this is the shape of a sample without axes of size 1.
        """
        shape, batch = self.classes[cls].shape, self.batch[cls]
        if batch is None or math.prod(shape[:batch]) != 1:
            return self.samples[cls]
        return shape[batch + 1 :] or (1,)

    def image(self, operand: Operand) -> Shape:
        """Return the shape (channels, *size) of a convolution's or pooling's input or result."""
        shape, batch = self.shape_and_batch(operand)
        if batch is None and shape[0] != 1:
            raise StepGraphError(f"a layer over windows reads {list(shape)}, whose first axis is not the batch.")
        return shape[1:]

    def inner_axis(self, operand: Operand, axis: int) -> int:
        """Return the position of an operand's axis, which must not be the batch axis, in the shape returned by :meth:`full_shape`."""
        batch = self.shape_and_batch(operand)[1]
        if axis == batch:
            raise StepGraphError("a layer runs over the samples of a batch; snnc runs each sample separately.")
        return axis - (batch is not None and axis > batch)

    def shape_and_batch(self, operand: Operand) -> tuple[Shape, int | None]:
        """Return the shape of an operand, and its batch axis."""
        match operand:
            case Ref(cls):
                return self.classes[cls].shape, self.batch[cls]
            case InputRef():
                return operand.shape, self.input_batch(operand)
            case Const(value):
                return value.shape, None

    def operands(self, cls: int) -> tuple[Operand, ...]:
        """Return the operands of a class, skipping classes that only change the layout."""
        return tuple(self.through_layout(o) for o in self.classes[cls].operands)

    def through_layout(self, operand: Operand) -> Operand:
        """Follow an operand through classes that only change the layout."""
        while isinstance(operand, Ref) and self.is_layout(operand.cls):
            operand = delayed(self.classes[operand.cls].operands[0], operand.delay)
        return operand

    def is_layout(self, cls: int) -> bool:
        """Return whether a class only moves the batch axis and axes of size 1."""
        step_class = self.classes[cls]
        if step_class.op not in ("reshape", "transpose", "expand") or isinstance(operand := step_class.operands[0], Const):
            return False
        if step_class.op == "transpose":
            shape, batch = self.shape_and_batch(operand)
            remaining = [k for k in step_class.attrs if k != batch and shape[k] != 1]
            if remaining != sorted(remaining):
                return False
        return self.operand_sample(operand) == self.samples[cls]

    def is_elementwise(self, cls: int) -> bool:
        """Return whether a class is an elementwise operation."""
        return self.classes[cls].op in ELEMENTWISE

    def live(self, layout: bool = False) -> list[int]:
        """Return the classes that results depend on; those that only change the layout are included if `layout`."""
        read: Callable[[Operand], Operand] = (lambda operand: operand) if layout else self.through_layout
        seen: set[int] = set()
        stack = [o.cls for r in self.results if isinstance(o := read(r.value), Ref)]
        while stack:
            cls = stack.pop()
            if cls not in seen:
                seen.add(cls)
                stack.extend(o.cls for o in map(read, self.classes[cls].operands) if isinstance(o, Ref))
        return sorted(seen)

    def order(self) -> list[int]:
        """Return the live classes in evaluation order within a step; a cycle without delay raises a StepGraphError."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        live = self.live()
        graph.add_nodes_from(live)
        for cls in live:
            graph.add_edges_from((o.cls, cls) for o in self.operands(cls) if isinstance(o, Ref) and o.delay == 0)
        try:
            return list(nx.lexicographical_topological_sort(graph, key=lambda c: -c))
        except nx.NetworkXUnfeasible:
            raise StepGraphError("the recovered step has a cycle without delay; the model cannot be ordered.") from None

    def constant(self, value: Array, cls: int) -> Array:
        """Return a constant operand of a class as a scalar, or as an array with the shape of the class's samples.

        A constant that differs between the samples of a batch raises a TimeVaryingError.
        """
        step_class, batch = self.classes[cls], self.batch[cls]
        array = np.asarray(value)
        if array.size == 1:
            return array.reshape(())
        full = array.reshape((1,) * (len(step_class.shape) - array.ndim) + array.shape)
        if batch is not None:
            first = full[(slice(None),) * batch + (slice(0, 1),)]
            if not (full == first).all():
                raise TimeVaryingError(f"a constant of shape {list(array.shape)} differs within the batch; all samples share one model.")
            full = first
        if full.size == 1 or (full == full.reshape(-1)[0]).all():
            return np.asarray(full.reshape(-1)[0])
        shape = tuple(1 if k == batch else d for k, d in enumerate(step_class.shape))
        return np.broadcast_to(full, shape).reshape(self.samples[cls]).copy()


def _batches(step: RecoveredStep) -> list[int | None]:
    """Return the batch axis of each class, derived from the inputs until no further one is found."""
    batches: list[int | None] = [_UNKNOWN] * len(step.classes)
    changed = True
    while changed:
        changed = False
        for step_class in step.classes:
            new = _batch(step, step_class, batches)
            if new != _UNKNOWN and batches[step_class.id] == _UNKNOWN:
                batches[step_class.id], changed = new, True
    return [None if b == _UNKNOWN else b for b in batches]


def _batch(step: RecoveredStep, step_class: StepClass, batches: list[int | None]) -> int | None:
    """Return the batch axis of a class, derived from those of its operands in `batches`; `_UNKNOWN` if these are not known yet."""
    if step_class.op == "gather":
        gather: GatherMap = step_class.attrs[0]
        return gather.batch
    known: list[tuple[int | None, Shape]] = []
    for operand in step_class.operands:
        if isinstance(operand, InputRef):
            known.append((step.input_batch(operand), operand.shape))
        elif isinstance(operand, Ref) and batches[operand.cls] != _UNKNOWN:
            known.append((batches[operand.cls], step.classes[operand.cls].shape))
    known.sort(key=lambda pair: pair[0] is None)
    if not known:
        return _UNKNOWN
    batch, shape = known[0]
    if batch is None:
        return None
    match step_class.op:
        case "reshape":
            outer = math.prod(shape[:batch])
            fits = [k for k, d in enumerate(step_class.shape) if d == shape[batch] and math.prod(step_class.shape[:k]) == outer]
            if not fits:
                raise StepGraphError(
                    f"a reshape of {list(shape)} to {list(step_class.shape)} mixes the samples of a batch; snnc runs each sample "
                    "separately. Keep the batch on a separate axis (flatten(1) instead of flatten(0) or view(-1))."
                )
            return fits[0]
        case "transpose":
            return step_class.attrs.index(batch)
        case "concat":
            if step_class.attrs[0] == batch:
                raise StepGraphError("a Concat joins the samples of a batch; snnc runs each sample separately.")
        case "reduce":
            if batch in step_class.attrs[1]:
                raise StepGraphError(
                    "a reduction runs over the samples of a batch; snnc runs each sample separately. "
                    "Return one value per sample, and sum them afterwards."
                )
        case "linear":
            if batch == len(shape) - 1:
                raise StepGraphError("a matrix product runs over the samples of a batch; snnc runs each sample separately.")
        case "conv" | "pool":
            if batch:
                raise StepGraphError(f"the layer '{step_class.op}' runs over the samples of a batch; snnc runs each sample separately.")
    return len(step_class.shape) - (len(shape) - batch)  # the same axis, counted from the last one as in broadcasting


def check_operations(step: RecoveredStep) -> None:
    """Refuse operations that a graph does not have, values of different batch sizes, and steps that read the whole sequence of an input."""
    sizes: set[int] = set()
    for cls in step.live():
        step_class, batch = step.classes[cls], step.batch[cls]
        sizes.update(() if batch is None else (step_class.shape[batch],))
        if len(sizes) > 1:
            raise StepGraphError(
                f"the values of a step have the batch sizes {sorted(sizes)}; a constant of one batch is broadcast to another."
            )
        if step.is_elementwise(cls) or step_class.op in _LAYERS:
            continue
        if step_class.op == "input":
            raise TimeMixingError(
                f"every step reads the whole sequence {list(step_class.shape)} of the input '{step_class.attrs[0]}' (for example, "
                "its mean over time); snnc runs step by step. Prepare the input outside the network."
            )
        if step_class.op in ("floor", "ceil", "round"):
            raise NotYetError(
                f"inside a step, '{step_class.op}' rounds values of {list(step_class.shape)} to any whole number; snnc reads rounding "
                "between bounds. Clip the rounded values, as in torch.clamp(torch.round(v), 0, 4)."
            )
        raise NotYetError(
            f"inside a step, '{step_class.op}' with the result {list(step_class.shape)} is not supported yet; snnc reads dense layers, "
            "convolutions, pooling, elementwise neurons, sums, reductions, slices and Concat."
        )
