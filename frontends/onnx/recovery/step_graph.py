"""Build the graph of a recovered step, after choosing its populations, states and initial states.

A class is a value of the step; see :class:`~snnc.frontends.onnx.reroll.roll.StepClass`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from snnc.compiler.ir.graph import Graph
from snnc.frontends.onnx.errors import InitialStateError, StepGraphError
from snnc.frontends.onnx.proof.traces import Trace
from snnc.frontends.onnx.recovery.build import FileFacts, GraphBuilder, visible_classes
from snnc.frontends.onnx.recovery.grouping import grouping
from snnc.frontends.onnx.recovery.initial import find_start
from snnc.frontends.onnx.recovery.states import states_of
from snnc.frontends.onnx.reroll.retime import delay_products, shift
from snnc.frontends.onnx.reroll.roll import Const, InputRef, Ref, StepClass, delayed
from snnc.frontends.onnx.reroll.step import RecoveredStep

_MAX_DELAYED_PRODUCTS: Final = 4
"""Maximum number of products whose delays are tried both before and after the product."""
_MAX_SEARCHES: Final = 2
"""Maximum number of candidates from :func:`_candidates` for which initial states are searched."""
_REARRANGES: Final = frozenset({"reshape", "transpose", "slice", "expand", "gather"})
"""Operations that only move values."""


def graph_of_step(step: RecoveredStep, file: FileFacts) -> tuple[Graph, tuple[Trace, ...]]:
    """Return the graph of a step, and the values in the file that its populations must equal.

    The delay of a matrix product or convolution (*product* in this module) is first placed before the product, which then reads zeros
    before step 0. If this contradicts the first steps of the file, the delay is placed after the product, so that step 0 receives nothing
    from it. Initial states that the file contains are tried first; others are searched at the end. If populations depend on each other
    within one step, all is tried again with products moved to the next step where possible (:func:`delay_products`).

    If no choice explains the file's first steps, raise an InitialStateError; if populations depend on each other within one step, a
    StepGraphError.
    """
    try:
        return _graph_of(step, file)
    except StepGraphError:
        later = delay_products(step)
        if later is None:
            raise
        return _graph_of(later, file)


def _graph_of(step: RecoveredStep, file: FileFacts) -> tuple[Graph, tuple[Trace, ...]]:
    """Try positions of the delays, then a search for initial states, until one combination explains the file."""
    failure: InitialStateError | None = None
    step = _delays_before_products(step)
    candidates = list(_candidates(step))
    for candidate, search in [*((c, False) for c in candidates), *((c, True) for c in candidates[:_MAX_SEARCHES])]:
        groups = grouping(candidate)
        visible = visible_classes(candidate, groups)
        states = {g: states_of(candidate, groups, g, visible) for g in groups.groups}
        try:
            start = find_start(candidate, groups, states, search=search)
        except InitialStateError as error:
            failure = failure or error
            continue
        return GraphBuilder(file, candidate, groups, states, start, visible).build()
    raise failure or InitialStateError("no initial state explains the file's first steps.")


def _candidates(step: RecoveredStep) -> Iterator[RecoveredStep]:
    """Yield the step, then the step with the delays of some products after the products."""
    yield step
    products = [c for c in step.live() if step.classes[c].op in ("linear", "conv") and _delay(step, c)][:_MAX_DELAYED_PRODUCTS]
    for size in range(1, len(products) + 1):
        for chosen in itertools.combinations(products, size):
            yield _moved(step, chosen)


def _delays_before_products(step: RecoveredStep) -> RecoveredStep:
    """Move delays after matrix products to the operands of the products."""
    chosen = {
        c: d
        for c in step.live()
        if step.classes[c].op in ("linear", "conv") and (d := _least_use_delay(step, [c, *_bias_of(step.classes, c)]))
    }
    for cls, delay in chosen.items():
        step = _moved(step, (cls,), -delay)
    return step


def _least_use_delay(step: RecoveredStep, chain: list[int]) -> int:
    """Return the smallest delay with which classes outside `chain`, or results, read its last class; `chain`: a product, then its bias."""
    if any(isinstance(r.value, Ref) and r.value.cls in chain for r in step.results):
        return 0
    uses = [o.delay for c in step.classes if c.id not in chain for o in c.operands if isinstance(o, Ref) and o.cls == chain[-1]]
    return min(uses, default=0)


def _rearrangements_before(classes: list[StepClass], cls: int) -> list[int]:
    """Return the classes that only rearrange the operand of `cls` in the same step, nearest first."""
    rearrangements: list[int] = []
    operand = classes[cls].operands[0]
    while isinstance(operand, Ref) and operand.delay == 0 and classes[operand.cls].op in _REARRANGES:
        rearrangements.append(operand.cls)
        operand = classes[operand.cls].operands[0]
    return rearrangements


def _delay(step: RecoveredStep, cls: int) -> int:
    """Return the delay with which a product reads its operand, through rearrangements in the same step."""
    operand = step.classes[[cls, *_rearrangements_before(step.classes, cls)][-1]].operands[0]
    return operand.delay if isinstance(operand, Ref | InputRef) else 0


def _moved(step: RecoveredStep, chosen: tuple[int, ...], by: int | None = None) -> RecoveredStep:
    """Move products to earlier steps, by `by` steps or, if it is None, by the delay of each operand; negative: to later steps."""
    classes = [c.copied() for c in step.classes]
    for cls in chosen:
        delay = _delay(step, cls) if by is None else by
        chain = [cls, *_bias_of(classes, cls)]
        first = _copy_rearrangements(classes, cls) if by is None else cls
        for link in [*chain, *_rearrangements_before(classes, cls)] if by is None else chain:
            shift(classes[link], -delay)
        classes[first].operands[0] = delayed(classes[first].operands[0], -delay)
        for c in classes:
            if c.id not in chain:
                c.operands = [delayed(o, delay) if isinstance(o, Ref) and o.cls == chain[-1] else o for o in c.operands]
    return step.changed(classes)


def _copy_rearrangements(classes: list[StepClass], cls: int) -> int:
    """Copy the classes that rearrange the operand of `cls`, so that no other class reads them; return the first copy."""
    for inner in _rearrangements_before(classes, cls):
        step_class = classes[inner].copied()
        step_class.id = len(classes)
        classes.append(step_class)
        classes[cls].operands[0] = Ref(step_class.id)
        cls = step_class.id
    return cls


def _bias_of(classes: list[StepClass], cls: int) -> list[int]:
    """Return the addition of a bias to a product; empty if there is none."""
    users = [c for c in classes if any(isinstance(o, Ref) and o.cls == cls for o in c.operands)]
    if len(users) == 1 and users[0].op == "add" and any(isinstance(o, Const) for o in users[0].operands):
        return [users[0].id]
    return []
