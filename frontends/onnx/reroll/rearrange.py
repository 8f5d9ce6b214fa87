"""Rewrite operations that move values within a sample, and products along one of several axes, as operations of a graph.

This is stage 4 of an import (``docs/explanation/onnx-import.md``). A class is one value of the recovered step
(:class:`~snnc.frontends.onnx.reroll.roll.StepClass`); a moving class only moves values.
Transposes, gathers, shuffles and paddings between two layers become one `gather`, which copies each of its values from a source or a
constant. A matrix product over the last of several axes becomes a convolution with a kernel of 1 between two gathers. Padding is merged
into the following convolution, and a gather into the columns of the following matrix product.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from snnc.frontends.common.windows import Pairs
from snnc.frontends.onnx.errors import StepGraphError
from snnc.frontends.onnx.flattening.evaluate import compute
from snnc.frontends.onnx.flattening.node import Array, GatherMap, Shape
from snnc.frontends.onnx.reroll.roll import Const, Operand, Ref, StepClass, delayed
from snnc.frontends.onnx.reroll.step import RecoveredStep

MOVES: Final = frozenset({"reshape", "transpose", "slice", "concat", "expand", "gather"})
"""Operations of moving classes."""
_MAX_SLICES: Final = 4
"""Maximum number of slices that a concatenation may join; with more, it becomes one gather."""


def rearranged(step: RecoveredStep) -> RecoveredStep:
    """Return the step with gathers and convolutions in place of operations that a graph lacks.

    A layer that mixes the samples of a batch raises a StepGraphError.
    """
    if not _without_operation(step) and not any(_many_axes(step, c) for c in step.live()):
        return step
    classes = [c.copied() for c in step.classes]
    for cls in [c for c in step.live() if _many_axes(step, c)]:
        _as_convolution(step, classes, cls)
    step = step.changed(classes)
    for cls in _roots(step, _without_operation(step)):
        tracer = _Tracer(step)
        gather = tracer.gather(tracer.numbers(Ref(cls), 0), step.batch[cls])
        if tracer.sources:
            classes[cls].op, classes[cls].attrs, classes[cls].operands = "gather", (gather,), tracer.sources
    step = step.changed(classes)
    for cls in step.live():
        _absorb_gather(step, classes, cls)
    return step.changed(classes)


def _without_operation(step: RecoveredStep) -> set[int]:
    """Return the moving classes for which a graph has no operation, and all moving classes that read them, directly or not."""
    live = [c for c in step.live(layout=True) if step.classes[c].op in MOVES]
    more = unsupported = {c for c in live if _has_no_operation(step, c)}
    while more:
        more = {c for c in live if any(isinstance(o, Ref) and o.cls in unsupported for o in step.classes[c].operands)} - unsupported
        unsupported = unsupported | more
    return unsupported


def _has_no_operation(step: RecoveredStep, cls: int) -> bool:
    """Return whether a graph has no operation for a moving class itself."""
    step_class = step.classes[cls]
    operand = step_class.operands[0]
    if step.is_layout(cls):
        return False
    match step_class.op:
        case "transpose":
            return True
        case "expand":
            return not isinstance(operand, Const)
        case "concat":
            axis = step.inner_axis(Ref(cls), step_class.attrs[0])
            sliced = [s for s in step.operands(cls) if isinstance(s, Ref) and step.classes[s.cls].op == "slice"]
            interleaved = math.prod(step.full_shape(Ref(cls))[:axis]) != 1
            return interleaved or any(isinstance(o, Const) for o in step_class.operands) or len(sliced) > _MAX_SLICES
    return False


def _roots(step: RecoveredStep, unsupported: set[int]) -> list[int]:
    """Return the classes in `unsupported` that a result or a computing class reads."""
    computing = [step.classes[c] for c in step.live(layout=True) if step.classes[c].op not in MOVES]
    read = [r.value for r in step.results] + [o for c in computing for o in c.operands]
    return sorted({o.cls for o in read if isinstance(o, Ref) and o.cls in unsupported})


def _many_axes(step: RecoveredStep, cls: int) -> bool:
    """Return whether a class is a product of a constant weight with the last of several axes."""
    step_class = step.classes[cls]
    if step_class.op != "linear" or len(step_class.operands) < 2 or isinstance(step_class.operands[0], Const):
        return False
    weight = step_class.operands[1]
    return isinstance(weight, Const) and math.prod(step.full_shape(step_class.operands[0])) != weight.value.shape[1]


def _as_convolution(step: RecoveredStep, classes: list[StepClass], cls: int) -> None:
    """Rewrite a matrix product over the last axis as a convolution over all other axes, with the last axis as channels."""
    step_class = classes[cls]
    operand, weight = step_class.operands[0], step_class.operands[1]
    assert isinstance(weight, Const), "checked by _many_axes"
    shape, batch = step.shape_and_batch(operand)
    size = 1 if batch is None else shape[batch]
    outputs, inputs = weight.value.shape
    places = math.prod(shape) // (size * inputs)
    out_batch = 0 if batch is not None else None
    channels_first = np.arange(places * inputs).reshape(places, inputs).T.reshape(-1)
    channels_last = np.arange(outputs * places).reshape(outputs, places).T.reshape(-1)
    moved = _new(classes, "gather", (GatherMap(channels_first, None, (batch,), out_batch),), (size, inputs, places), [operand])
    kernel = Const(weight.value.reshape(outputs, inputs, 1))
    conv = _new(classes, "conv", ((1,), ((0, 0),), (1,), 1), (size, outputs, places), [Ref(moved), kernel, *step_class.operands[2:]])
    gather = GatherMap(channels_last, None, (out_batch,), step.batch[cls])
    step_class.op, step_class.attrs, step_class.operands = "gather", (gather,), [Ref(conv)]


def _new(classes: list[StepClass], op: str, attrs: tuple[Any, ...], shape: Shape, operands: list[Operand]) -> int:
    step_class = StepClass(len(classes), op, attrs, shape, {}, operands)
    classes.append(step_class)
    return step_class.id


class _Tracer:
    """Traces values of moving classes to their sources: numbers the values of all sources, and moves these numbers as the classes do."""

    def __init__(self, step: RecoveredStep) -> None:
        self._step = step
        self.sources: list[Operand] = []
        self.constants: list[Array] = []
        self._starts: list[int] = [0]

    def numbers(self, operand: Operand, delay: int) -> Array:
        """Return, in the shape of an operand, the number of the source value that each value copies; constants have negative numbers."""
        if isinstance(operand, Const):
            start = -1 - sum(c.size for c in self.constants)
            self.constants.append(np.asarray(operand.value, np.float32))
            return start - np.arange(operand.value.size).reshape(operand.value.shape)
        if isinstance(operand, Ref) and self._step.classes[operand.cls].op in MOVES:
            step_class = self._step.classes[operand.cls]
            parts = [self.numbers(o, delay + operand.delay) for o in step_class.operands]
            return compute(step_class.op, step_class.attrs, step_class.shape, parts)
        source = delayed(operand, delay)
        shape = self._step.shape_and_batch(source)[0]
        if source not in self.sources:
            self.sources.append(source)
            self._starts.append(self._starts[-1] + math.prod(shape))
        start = self._starts[self.sources.index(source)]
        return start + np.arange(math.prod(shape)).reshape(shape)

    def gather(self, numbers: Array, batch: int | None) -> GatherMap:
        """Return the gather that copies the source values with these `numbers`, whose batch axis is `batch`."""
        local = (numbers if batch is None else np.moveaxis(numbers, batch, 0)[0]).reshape(-1)
        index = np.full(local.size, -1, np.int64)
        position = 0
        for k, source in enumerate(self.sources):
            shape, axis = self._step.shape_and_batch(source)
            here = np.flatnonzero((local >= self._starts[k]) & (local < self._starts[k + 1]))
            places = list(np.unravel_index(local[here] - self._starts[k], shape))
            if axis is not None and places[axis].any():
                raise StepGraphError("a step moves values from one sample of a batch to another; snnc runs each sample separately.")
            inner = tuple(d for a, d in enumerate(shape) if a != axis)
            rest = tuple(p for a, p in enumerate(places) if a != axis)
            index[here] = position + (np.ravel_multi_index(rest, inner) if inner else 0)
            position += math.prod(inner)
        fill = None
        if (local < 0).any():
            values = np.concatenate([c.reshape(-1) for c in self.constants])
            fill = np.zeros(local.size, np.float32)
            fill[local < 0] = values[-1 - local[local < 0]]
        return GatherMap(index, fill, tuple(self._step.shape_and_batch(s)[1] for s in self.sources), batch)


def _absorb_gather(step: RecoveredStep, classes: list[StepClass], cls: int) -> None:
    """Merge a gather into the convolution or product `cls` that reads it, if possible."""
    step_class = classes[cls]
    if step_class.op not in ("conv", "linear"):
        return
    operand = step_class.operands[0]
    if not isinstance(operand, Ref) or classes[operand.cls].op != "gather" or len(classes[operand.cls].operands) != 1:
        return
    inner = classes[operand.cls]
    source, gather = inner.operands[0], inner.attrs[0]
    if step_class.op == "conv":
        _padding_into_conv(step, step_class, operand, source, gather)
    else:
        _gather_into_linear(step, classes, step_class, operand, source, gather)


def _padding_into_conv(step: RecoveredStep, step_class: StepClass, operand: Ref, source: Operand, gather: GatherMap) -> None:
    full, batch = step.shape_and_batch(source)
    pads = padding_of(gather, step.full_shape(source), step.full_shape(operand))
    if pads is None or any(pads[0]) or batch not in (0, None) or len(full) != len(step_class.shape):
        return
    stride, padding, dilation, groups = step_class.attrs
    total = tuple((a + c, b + d) for (a, b), (c, d) in zip(padding, pads[1:], strict=True))
    step_class.attrs = (stride, total, dilation, groups)
    step_class.operands[0] = delayed(source, operand.delay)


def _gather_into_linear(
    step: RecoveredStep, classes: list[StepClass], step_class: StepClass, operand: Ref, source: Operand, gather: GatherMap
) -> None:
    """Merge a gather into a product: permute the weight's columns, so that they multiply the source's values in order.

    The gather's constants change the bias. A gather that reads a value twice is not merged.
    """
    weight = step_class.operands[1]
    chosen = gather.index[gather.index >= 0]
    if not isinstance(weight, Const) or weight.value.shape[1] != gather.index.size or len(np.unique(chosen)) != chosen.size:
        return
    shape, batch = step.shape_and_batch(source)
    size = math.prod(step.full_shape(source))
    columns = np.zeros((weight.value.shape[0], size), np.float32)
    columns[:, chosen] = weight.value[:, gather.index >= 0]
    bias = step_class.operands[2:]
    if gather.fill is not None and gather.fill.any():
        shift = weight.value.astype(np.float64) @ gather.fill
        old = bias[0].value if bias and isinstance(bias[0], Const) else 0.0
        bias = [Const((old + shift).astype(np.float32))]
    count = 1 if batch is None else shape[batch]
    out_batch = 0 if step.batch[step_class.id] == 0 else None
    if batch is not None and out_batch is None:
        return
    identity = GatherMap(np.arange(size), None, (batch,), out_batch)
    flat = _new(classes, "gather", (identity,), (count, size), [delayed(source, operand.delay)])
    step_class.operands = [Ref(flat), Const(columns), *bias]


def padding_of(gather: GatherMap, source: Shape, result: Shape) -> Pairs | None:
    """Return the numbers of zeros (before, after) along each axis if a gather only pads its source; else None."""
    if gather.fill is not None and gather.fill.any():
        return None
    source = aligned(source, len(result))
    if len(source) != len(result) or any(a > b for a, b in zip(source, result, strict=True)):
        return None
    index = gather.index.reshape(result)
    first = np.argwhere(index == 0)
    if len(first) != 1:
        return None
    pads = tuple((int(a), r - s - int(a)) for a, r, s in zip(first[0], result, source, strict=True))
    if min(b for _, b in pads) < 0:
        return None
    expected = np.pad(np.arange(math.prod(source)).reshape(source), pads, constant_values=-1)
    return pads if np.array_equal(index, expected) else None


def aligned(shape: Shape, rank: int) -> Shape:
    """Return a shape with `rank` axes, by adding or removing leading axes of size 1 as far as possible."""
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return (1,) * (rank - len(shape)) + shape


def with_explicit_broadcasts(step: RecoveredStep) -> RecoveredStep:
    """Return the step with an "expand" for each operand, other than constants, that an elementwise operation broadcasts."""
    broadcast = [
        (c, k)
        for c in step.live()
        for k, o in enumerate(step.classes[c].operands)
        if step.is_elementwise(c) and not isinstance(o, Const) and step.operand_sample(o) != step.samples[c]
    ]
    if not broadcast:
        return step
    classes = [c.copied() for c in step.classes]
    expanded: dict[tuple[Operand, Shape], int] = {}
    for cls, k in broadcast:
        operand, shape = classes[cls].operands[k], classes[cls].shape
        if (operand, shape) not in expanded:
            expanded[operand, shape] = _new(classes, "expand", (), shape, [operand])
        classes[cls].operands[k] = Ref(expanded[operand, shape])
    return step.changed(classes)
