"""Shift the classes of a step (:class:`~snnc.frontends.onnx.reroll.roll.StepClass`) in time, until no delay is negative.

The roll-up may assign a value to a later step than the one that computes it. For example, a reset reads the spike of the previous step,
and the roll-up may assign this spike to the step of the reset. A class that reads the spike in the same step then reads it with delay -1.
Shifting a class changes the delays with which it reads and is read, but not its values.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

from snnc.frontends.onnx.errors import TimeMixingError
from snnc.frontends.onnx.reroll.roll import InputRef, Operand, Ref, StepClass, delayed
from snnc.frontends.onnx.reroll.step import RecoveredStep


def retime(classes: list[StepClass], results: list[Operand], *, aligned: bool = False) -> list[Operand]:
    """Make all delays of the rolled-up `classes` non-negative, in place, and return the operands of the `results`.

    If `aligned`, the first step at which the file computes a class becomes step 0, unless a delay would become negative. A value that needs
    an input ahead of time, and steps that depend on each other in a cycle, raise a TimeMixingError.
    """
    lead = [-_first(c) if aligned else 0 for c in classes]  # number of steps to add to the steps of each class
    for _ in range(len(classes) + 1):
        changed = False
        for result in results:
            changed |= _pull(lead, result, 0)
        for step_class in classes:
            for operand in step_class.operands:
                changed |= _pull(lead, operand, lead[step_class.id])
        if not changed:
            break
    else:
        raise TimeMixingError("the steps depend on each other in a cycle; snnc reads causal models only.")
    if any(lead):
        for step_class in classes:
            step_class.operands = [_moved(o, lead, lead[step_class.id]) for o in step_class.operands]
            if lead[step_class.id]:
                shift(step_class, lead[step_class.id])
        results = [_moved(r, lead, 0) for r in results]
    return results


def _first(step_class: StepClass) -> int:
    """Return the first step at which the file computes a class, or the smallest delay of an input that it reads, if that is lower."""
    computed = 0 if step_class.static else max(0, min([*step_class.nodes, *step_class.forced]))
    return min([computed, *(o.delay for o in step_class.operands if isinstance(o, InputRef))])


def _pull(lead: list[int], operand: Operand, reader_lead: int) -> bool:
    """Raise the lead of the class read as `operand` until its delay is not negative; return whether the lead changed."""
    if isinstance(operand, Ref) and operand.delay + reader_lead - lead[operand.cls] < 0:
        lead[operand.cls] = operand.delay + reader_lead
        return True
    return False


def _moved(operand: Operand, lead: list[int], reader_lead: int) -> Operand:
    moved = delayed(operand, reader_lead - (lead[operand.cls] if isinstance(operand, Ref) else 0))
    if isinstance(moved, InputRef) and moved.delay < 0:
        raise TimeMixingError(f"a step reads the input '{moved.name}' {-moved.delay} step(s) ahead; snnc reads causal models only.")
    return moved


def shift(step_class: StepClass, lead: int) -> None:
    """Add `lead` to the steps of a class, and sort its nodes into its fields: `initial` before step 0, else `nodes` or `forced`."""
    moved = defaultdict(list, {t + lead: [n] for t, n in step_class.nodes.items()})
    for t, nodes in (*step_class.forced.items(), *step_class.initial.items()):
        moved[t + lead] += nodes
    step_class.initial = {t: nodes for t, nodes in moved.items() if t < 0}
    step_class.nodes = {t + lead: n for t, n in step_class.nodes.items() if t + lead >= 0}
    others = ((t, [n for n in nodes if n is not step_class.nodes.get(t)]) for t, nodes in moved.items() if t >= 0)
    step_class.forced = {t: nodes for t, nodes in others if nodes}


def delay_products(step: RecoveredStep) -> RecoveredStep | None:
    """Return the step with matrix products and convolutions moved to the next step if only later steps use them; None if there are none.

    For example, compartments that are coupled after they fire (``v = v + G v``) read their own population in the same step, through the
    product. If only the next step reads the result, the product and everything computed from it in the same step can move to the start of
    the next step. The cycle then has a delay.
    """
    users = _users(step)
    slack = _slack(step, users)
    products = [c for c in step.live() if step.classes[c].op in ("linear", "conv") and slack[c] >= 1]
    moved = _following(products, users)
    if not moved:
        return None

    def shifted(operand: Operand, later: bool) -> Operand:
        return delayed(operand, later - (isinstance(operand, Ref) and operand.cls in moved))

    classes = [replace(c, operands=[shifted(o, c.id in moved) for o in c.operands]) for c in step.classes]
    for cls in moved:
        shift(classes[cls], 1)
    results = [replace(r, value=shifted(r.value, False)) for r in step.results]
    return step.changed(classes, results)


def _users(step: RecoveredStep) -> dict[int, list[tuple[int, int]]]:
    """Return the classes that read each class, with their delays."""
    users: dict[int, list[tuple[int, int]]] = {}
    for step_class in step.classes:
        for operand in step_class.operands:
            if isinstance(operand, Ref):
                users.setdefault(operand.cls, []).append((step_class.id, operand.delay))
    return users


def _slack(step: RecoveredStep, users: dict[int, list[tuple[int, int]]]) -> list[float]:
    """Return the number of steps until the value of each class first affects a result; infinity if it affects none."""
    slack = [math.inf] * len(step.classes)
    for result in step.results:
        if isinstance(result.value, Ref):
            slack[result.value.cls] = min(slack[result.value.cls], result.value.delay)
    while True:
        least = {cls: min(delay + slack[user] for user, delay in uses) for cls, uses in users.items()}
        shorter = {cls: value for cls, value in least.items() if value < slack[cls]}
        if not shorter:
            return slack
        for cls, value in shorter.items():
            slack[cls] = value


def _following(products: list[int], users: dict[int, list[tuple[int, int]]]) -> set[int]:
    """Return the products, and all classes that depend on them in the same step."""
    following, stack = set(products), list(products)
    while stack:
        new = {user for user, delay in users.get(stack.pop(), ()) if delay == 0} - following
        following |= new
        stack.extend(new)
    return following
