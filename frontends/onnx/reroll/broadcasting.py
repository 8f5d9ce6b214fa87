"""Make broadcasts within a sample explicit: elementwise operations that repeat values, as inhibition by the sum of a layer."""

from __future__ import annotations

from copy import copy

from snnc.frontends.onnx.reroll.roll import Const, Operand, Ref, StepClass
from snnc.frontends.onnx.reroll.step import RecoveredStep


def broadcast_out(step: RecoveredStep) -> RecoveredStep:
    """Return the step with an expansion before every elementwise operation that reads fewer values than it makes."""
    found = [(c, k) for c in step.live() if step.is_elementwise(c) for k, o in enumerate(step.classes[c].operands) if _repeats(step, c, o)]
    if not found:
        return step
    classes = [copy(c) for c in step.classes]
    for c in classes:
        c.operands = list(c.operands)
    made: dict[tuple[Operand, tuple[int, ...]], int] = {}
    for cls, k in found:
        operand, shape = classes[cls].operands[k], classes[cls].shape
        if operand is None:
            raise AssertionError
        if (operand, shape) not in made:
            made[operand, shape] = len(classes)
            classes.append(StepClass(len(classes), "expand", (), shape, {}, [operand]))
        classes[cls].operands[k] = Ref(made[operand, shape])
    return RecoveredStep(classes, step.axes, step.results, step.batched)


def _repeats(step: RecoveredStep, cls: int, operand: Operand | None) -> bool:
    if operand is None or isinstance(operand, Const):
        return False
    return step.operand_sample(operand) != step.samples[cls]
