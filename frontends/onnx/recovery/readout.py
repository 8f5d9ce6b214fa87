"""Determine what an output of the file is: the values of steps, or their last value, sum, mean, maximum or minimum.

A reduction covers all steps, or a range of consecutive steps. To *roll up* an output is to recover it as a value of one step; see
:mod:`snnc.frontends.onnx.reroll.roll`.
"""

from __future__ import annotations

import functools
import math
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Readout
from snnc.frontends.common.functions import ELEMENTWISE
from snnc.frontends.onnx.errors import ReadoutError, TimeMixingError
from snnc.frontends.onnx.flattening import shaping
from snnc.frontends.onnx.flattening.node import Node, Shape
from snnc.frontends.onnx.flattening.shaping import elementwise
from snnc.frontends.onnx.reroll.roll import Const, Operand, Ref, Roller, StepClass
from snnc.frontends.onnx.reroll.step import Result
from snnc.frontends.onnx.reroll.timeline import GraphTimeline, StepWindow, summands, unscaled, windowed

_MAX_POST: Final = 40
"""Maximum number of operations after a stack of steps, or a reduction over time, that are searched."""


def roll_output(roller: Roller, name: str, output: Node) -> Result:
    """Roll up one output.

    An output that is neither a value of a step nor a known reduction over the steps raises a ReadoutError; one that combines the steps in
    another order, a TimeMixingError.
    """
    timeline = roller.timeline
    if output.value is not None:
        raise ReadoutError(f"the output '{name}' is constant; it does not depend on the inputs.")
    for axis in range(len(output.shape)):
        window = windowed(timeline, output, axis)
        if window is not None:
            rows = window.rows if len(window.rows) == timeline.steps else ()
            return _recorded(roller, name, "all", window, axis, window.rows[-1].shape, rows)
    _check_stack(timeline, name, output)
    if summary := _summary(timeline, output):
        kind, window = summary
        return _recorded(roller, name, kind, window, None, output.shape)
    if added := _summed_without_time(roller, name, output):
        return added
    value = roller.roll({timeline.steps - 1: _with_accumulations(timeline, name, output)})
    return Result(name, value, "last", None, output.shape)


def _recorded(
    roller: Roller, name: str, readout: Readout, window: StepWindow, axis: int | None, shape: Shape, rows: tuple[Node, ...] = ()
) -> Result:
    value = roller.roll(dict(enumerate(window.rows, window.start)))
    stop = window.start + len(window.rows)
    return Result(name, value, readout, axis, shape, rows, window.start, None if stop == roller.timeline.steps else stop)


def _check_stack(timeline: GraphTimeline, name: str, output: Node) -> None:
    """Refuse an output that combines the values of all steps, but neither stacks them in order nor reduces them."""
    node, after = output, list[Node]()
    for _ in range(_MAX_POST):
        if node.op == "concat":
            _check_parts(timeline, name, output, node, after)
        if node.op == "write_slice":
            raise TimeMixingError(
                f"the output '{name}' of shape {list(output.shape)} is written entry by entry, but not in the order of "
                "the steps; snnc reads causal models whose outputs are in order. Write the values of every step, in order."
            )
        computed = [n for n in node.inputs if n.value is None]
        if len(computed) != 1 or node.op == "reduce":
            return
        after.insert(0, node)
        node = computed[0]


def _check_parts(timeline: GraphTimeline, name: str, output: Node, node: Node, after: list[Node]) -> None:
    """Refuse a stack of values that do not belong to consecutive steps; `latest` are the last input steps on which they depend."""
    latest, depths = [timeline.latest(n) for n in node.inputs], [n.depth for n in node.inputs]
    distinct = len(set(latest)) == len(latest)
    one_by_one = len(latest) == timeline.steps and (distinct or len(set(depths)) == len(depths))
    strided = distinct and len(latest) > 2 and timeline.latest(output) - min(latest) >= len(latest)
    if not timeline.timed or not (one_by_one or strided) or len({n.signature for n in node.inputs}) > 1:
        return
    if latest == list(range(timeline.steps)) and _joins(node, after):
        raise ReadoutError(
            f"the output '{name}' of shape {list(output.shape)} joins the steps along an axis that it shares with the batch or "
            "neurons; stack them along a separate axis (torch.stack instead of torch.cat, and no flatten or view over that axis)."
        )
    raise TimeMixingError(
        f"the output '{name}' is made from {len(latest)} values that do not correspond to consecutive steps of the input (reversed, "
        "strided or future steps, or a layer over time); snnc reads causal models whose outputs are in order. Stack the values of all "
        "steps, or of consecutive steps, in order."
    )


def _joins(stack: Node, after: list[Node]) -> bool:
    """Return whether nodes after a stack of steps merge the time axis with another axis."""
    axis, shape = stack.attrs[0], stack.shape
    joined = shape[axis] != len(stack.inputs)
    for node in after:
        if node.op == "reshape":
            outer = math.prod(shape[:axis])
            inside = max(k for k in range(len(node.shape)) if math.prod(node.shape[:k]) <= outer)
            joined |= node.shape[inside] != shape[axis]
            axis = inside
        elif node.op == "transpose":
            axis = node.attrs.index(axis)
        elif node.op in ELEMENTWISE:
            axis += len(node.shape) - len(shape)
        elif node.op != "linear" or axis == len(shape) - 1:
            return False
        shape = node.shape
    return bool(joined)


def _summary(timeline: GraphTimeline, output: Node) -> tuple[Readout, StepWindow] | None:
    """Return the readout of an output and its range of steps; None if it is not a reduction over steps."""
    inner, scale = unscaled(output)
    node = inner.inputs[0] if inner.op == "reshape" else inner
    reduction = _reduced(timeline, node) if node.op == "reduce" else _folded_steps(timeline, node)
    if reduction is None:
        return None
    kind, window = reduction
    if kind == "sum" and np.isclose(scale * len(window.rows), 1, rtol=1e-5):
        return "mean", window
    if scale == 1.0:
        return kind, window
    if scale <= 0 and kind in ("max", "min"):
        return None
    rows = tuple(elementwise(timeline.pool, "mul", row, timeline.pool.number(scale)) for row in window.rows)
    return kind, StepWindow(window.start, rows)


def _reduced(timeline: GraphTimeline, node: Node) -> tuple[Readout, StepWindow] | None:
    """Match a reduction over time, and possibly over axes of the values of a step."""
    kind, axes = node.attrs
    source = node.inputs[0]
    for axis in axes:
        window = windowed(timeline, source, axis)
        if window is None:
            continue
        rest = tuple(a - (a > axis) for a in axes if a != axis)
        rows = tuple(shaping.reduce(timeline.pool, row, kind, rest, True) for row in window.rows) if rest else window.rows
        return kind, StepWindow(window.start, rows)
    return None


def _folded_steps(timeline: GraphTimeline, node: Node) -> tuple[Readout, StepWindow] | None:
    """Match a reduction that is written as nested sums, maxima or minima of steps, such as ``max(max(a0, a1), a2)``.

    A sum over all steps is not matched: it is rolled up as a state, which :func:`accumulated` recognises.
    """
    if node.op not in ("add", "max", "min") or not timeline.timed:
        return None
    latest = timeline.latest
    parts: list[Node] = []
    rest, op = node, node.op
    while rest.op == op and len(rest.inputs) == 2 and all(n.value is None for n in rest.inputs):
        earlier, later = sorted(rest.inputs, key=latest)
        first = parts[-1] if parts else later
        if latest(earlier) != latest(later) - 1 or later.signature != first.signature or (parts and latest(later) != latest(first) - 1):
            break
        parts.append(later)
        rest = earlier
    if len(parts) < 2 or rest.signature != parts[0].signature or latest(rest) != latest(parts[-1]) - 1:
        return None
    rows = (rest, *reversed(parts))
    if op == "add" and len(rows) == timeline.steps:
        return None
    return "sum" if op == "add" else "max" if op == "max" else "min", StepWindow(latest(rest), rows)


def _with_accumulations(timeline: GraphTimeline, name: str, output: Node) -> Node:
    """Rewrite sums and means over all steps as step-by-step accumulations, if the output applies further operations to them."""
    known: dict[int, Node] = {}

    def walk(node: Node, depth: int) -> Node:
        if node.value is not None or not timeline.timed or timeline.latest(node) < timeline.steps - 1:
            return node
        if node.id not in known:
            rewritten = _accumulation(timeline, name, node) if node.op == "reduce" else None
            if rewritten is None and depth < _MAX_POST and node.op != "concat":
                inputs = tuple(walk(n, depth + 1) for n in node.inputs)
                changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
                rewritten = timeline.pool.make(node.op, inputs, node.shape, node.attrs) if changed else node
            known[node.id] = rewritten or node
        return known[node.id]

    return walk(output, 0)


def _accumulation(timeline: GraphTimeline, name: str, node: Node) -> Node | None:
    """Return the step-by-step accumulation for a sum or mean over all steps; None if `node` is something else."""
    reduction = _reduced(timeline, node)
    if reduction is None:
        return None
    kind, window = reduction
    if kind not in ("sum", "mean") or len(window.rows) != timeline.steps:
        what = "of some steps only" if kind in ("sum", "mean") else "over the steps"
        raise ReadoutError(
            f"the output '{name}' applies further operations to the {kind} {what}; snnc supports this only for the sum and mean over all "
            "steps. Return the values of all steps, or the reduction itself."
        )
    total = functools.reduce(functools.partial(elementwise, timeline.pool, "add"), window.rows)
    if kind == "mean":
        total = elementwise(timeline.pool, "div", total, timeline.pool.number(timeline.steps))
    return shaping.reshape(timeline.pool, total, node.shape)


def _summed_without_time(roller: Roller, name: str, output: Node) -> Result | None:
    """Roll up an output that is the sum or mean of a value over the steps, in a file whose inputs have no time axis; else return None."""
    steps = roller.timeline.steps
    parts, scale = summands(output)
    kind: Readout | None = "sum" if scale == 1.0 else "mean" if np.isclose(scale * steps, 1, rtol=1e-5) else None
    if roller.timeline.timed or len(parts) != steps or kind is None:
        return None
    return Result(name, roller.roll(dict(enumerate(parts))), kind, None, output.shape)


def accumulated(roller: Roller, result: Result) -> Result:
    """Return the sum or mean over the steps of the value that an output accumulates step by step; other results are unchanged."""
    readout: Readout = "sum"
    value = result.value
    if result.readout != "last" or not isinstance(value, Ref) or value.delay:
        return result
    step_class = roller.classes[value.cls]
    if step_class.op in ("div", "mul") and len(step_class.operands) == 2:
        factor = next((o for o in step_class.operands if isinstance(o, Const)), None)
        inner = next((o for o in step_class.operands if isinstance(o, Ref)), None)
        if factor is None or inner is None or inner.delay or factor.value.size != 1:
            return result
        scale = float(factor.value.reshape(-1)[0])
        scale = 1 / scale if step_class.op == "div" and scale and step_class.operands[0] is inner else scale
        if not np.isclose(scale * roller.timeline.steps, 1, rtol=1e-5):
            return result
        step_class, readout = roller.classes[inner.cls], "mean"
    summand = _summand(roller, step_class)
    return result if summand is None else Result(result.name, summand, readout, None, result.shape)


def _summand(roller: Roller, step_class: StepClass) -> Operand | None:
    """Return the value that a class adds to its previous value, starting from zero; None for other classes."""
    if step_class.op != "add" or len(step_class.operands) != 2:
        return None
    previous = Ref(step_class.id, 1)
    rest = [o for o in step_class.operands if o != previous]
    if len(rest) != 1 or not isinstance(rest[0], Ref):
        return None
    users = [c.id for c in roller.classes if c.id != step_class.id for o in c.operands if isinstance(o, Ref) and o.cls == step_class.id]
    if len(users) > 1 or any(roller.classes[u].op not in ("div", "mul") for u in users):
        return None
    starts = [n for nodes in step_class.initial.values() for n in nodes]
    firsts = step_class.forced.get(0, [])
    summand = roller.classes[rest[0].cls]
    zero_start = all(n.value is not None and not n.value.any() for n in starts)
    same_start = all(n is summand.nodes.get(0) or n in summand.forced.get(0, ()) for n in firsts)
    only_first = set(step_class.forced) <= {0}
    return rest[0] if zero_start and same_start and only_first and (starts or firsts) else None
