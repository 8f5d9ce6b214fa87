"""Put matrix products whose results only later steps need into the step that needs them.

A compartment that is coupled to others after it has fired, ``v = v + G v``, makes its population read itself in the same step, by
way of a product. Where nothing but the next step reads the result, the product and all that follows from it belong as well to the
start of the next step, and the cycle has a delay.
"""

from __future__ import annotations

import math
from collections import deque
from copy import copy
from dataclasses import replace

from snnc.frontends.onnx.reroll.retime import shift
from snnc.frontends.onnx.reroll.roll import InputRef, Operand, Ref, StepClass
from snnc.frontends.onnx.reroll.step import RecoveredStep


def postponed(step: RecoveredStep) -> RecoveredStep | None:
    """Return the step with such products one step later; None if there are none."""
    users = _users(step)
    slack = _slack(step, users)
    products = [c for c in step.live() if step.classes[c].op in ("linear", "conv") and slack[c] >= 1]
    moved = _following(products, users)
    if not moved:
        return None
    classes: list[StepClass] = []
    for old in step.classes:
        made = copy(old)
        made.operands = [_operand(o, moved, made.id in moved) for o in old.operands]
        if made.id in moved:
            shift(made, 1)
        classes.append(made)
    results = [replace(r, value=_operand(r.value, moved, False) or r.value) for r in step.results]
    return RecoveredStep(classes, step.axes, results, step.batched)


def _users(step: RecoveredStep) -> dict[int, list[tuple[int, int]]]:
    users: dict[int, list[tuple[int, int]]] = {}
    for made in step.classes:
        for operand in made.operands:
            if isinstance(operand, Ref):
                users.setdefault(operand.cls, []).append((made.id, operand.delay))
    return users


def _slack(step: RecoveredStep, users: dict[int, list[tuple[int, int]]]) -> list[float]:
    """Return for each class how many steps pass before anything that it computes is seen."""
    slack = [math.inf] * len(step.classes)
    for result in step.results:
        if isinstance(result.value, Ref):
            slack[result.value.cls] = min(slack[result.value.cls], result.value.delay)
    changed = True
    while changed:
        changed = False
        for cls, uses in users.items():
            least = min(delay + slack[user] for user, delay in uses)
            if least < slack[cls]:
                slack[cls], changed = least, True
    return slack


def _following(products: list[int], users: dict[int, list[tuple[int, int]]]) -> set[int]:
    """Return the products and what follows from them in the same step."""
    found = set(products)
    queue = deque(products)
    while queue:
        for user, delay in users.get(queue.popleft(), ()):
            if delay == 0 and user not in found:
                found.add(user)
                queue.append(user)
    return found


def _operand(operand: Operand | None, moved: set[int], later: bool) -> Operand | None:
    if isinstance(operand, Ref):
        return replace(operand, delay=operand.delay + later - (operand.cls in moved))
    return replace(operand, delay=operand.delay + later) if isinstance(operand, InputRef) else operand
