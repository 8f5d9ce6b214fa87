"""Worker cycles of arithmetic in kernels and update rules, from the operations in the printed code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from snnc.compiler.losses.update_rules import UpdateRule
from snnc.compiler.neurons.expression import LOWERED, Assignment, Call, Expression, transform

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (name,) for name in LOWERED},
    **dict.fromkeys(("min", "max", "spike", "spike_ge", "gt", "ge"), ("compare",)),
    "sub": ("add",),
    "sign": ("compare", "compare", "add"),
    "sigmoid": ("neg", "exp", "add", "div"),
    "where": ("compare", "select"),
    "detach": (),
}
"""Operations of each function of the language, as printed by :mod:`snnc.backends.codegen.printing`."""
_CONDITIONS: Final = ("spike", "spike_ge", "gt", "ge")
"""Functions whose comparison is the condition of a ``where`` around them, which then needs none of its own."""


def operation_counts(assignments: Iterable[Assignment]) -> dict[str, int]:
    """Return the number of operations of each kind for one neuron, without zeros. A ``where`` over a comparison compares once."""
    counts: Counter[str] = Counter()

    def count(expression: Expression) -> Expression:
        if isinstance(expression, Call):
            counts.update(KINDS[expression.function])
            condition = expression.args[0]
            if expression.function == "where" and isinstance(condition, Call) and condition.function in _CONDITIONS:
                counts["compare"] -= 1
        return expression

    for assignment in assignments:
        transform(assignment.value, count)
    return {kind: n for kind, n in counts.items() if n}


PAIR_CYCLES: Final[Mapping[str, int]] = {
    # one bundle for two floats in registers (f32v2 instructions)
    **dict.fromkeys(("add", "mul", "neg", "abs"), 1),
    # a comparison yields a mask, which is combined with 1.0
    "compare": 2,
    # and, and-not, or
    "select": 3,
    # PopLibs cycle estimates for two floats: division and square root 10, exp 6, tanh 12
    **dict.fromkeys(("div", "sqrt"), 10),
    "exp": 6,
    "log": 6,  # assumed: as exp
    "tanh": 12,
    "float16": 2,  # to two float16 numbers and back
    "pow": 14,  # exp(b * log(a)): 6 + 6, the product and a move
    "erf": 40,  # assumed: a polynomial in software
    **dict.fromkeys(("sin", "cos"), 60),  # assumed: software
}
"""Worker cycles of one operation, on one float or two; comments give sources, or say that a number is assumed."""
SGD_CYCLES: Final = 5
"""Worker cycles of plain gradient descent per parameter: load the gradient and the parameter, multiply, add, store."""

MEAN_CYCLES: Final = 5
"""Worker cycles of the mean over accumulated gradients: load the stored sum, add, multiply, store the mean, store 0."""

SQUARE_CYCLES: Final = 3
"""Worker cycles of a square in the norm of the gradients: load, multiply, add."""


def square_cycles(rule: UpdateRule, *, accumulates: bool) -> int:
    """Return the worker cycles to add a gradient to the norm; 0 if no norm is needed.

    They include those to remove the loss scale from the gradient first and, with `accumulates`, to compute the mean of several batches.
    """
    if rule.clip_norm is None and rule.loss_scale is None:
        return 0
    scaled = int(rule.loss_scale is not None)
    return SQUARE_CYCLES + scaled + pair_cycles(rule.clipped) + (MEAN_CYCLES if accumulates else 0)


def pair_cycles(assignments: Iterable[Assignment]) -> int:
    """Return the worker cycles of `assignments` for one neuron, or for two neurons in vectors, without loads and stores."""
    return sum(PAIR_CYCLES[kind] * number for kind, number in operation_counts(assignments).items())


def update_cycles(rule: UpdateRule, *, accumulates: bool = False) -> int:
    """Return the worker cycles of an optimiser per parameter; with `accumulates`, it uses the mean gradient of several batches.

    A rule with a square root updates two parameters at once: it loads the gradients and all stored numbers, computes, stores and branches.
    Another rule updates parameters one by one: :data:`SGD_CYCLES`, one cycle per moment, and the cycles of the operations that gradient
    descent with momentum does not have.
    """
    arithmetic, moments = pair_cycles(rule.step), len(rule.moments)
    mean = (MEAN_CYCLES if accumulates else 0) + (rule.loss_scale is not None)
    if "sqrt" in operation_counts(rule.step):
        return (arithmetic + mean + 2 + 2 * len(rule.changed_arrays)) // 2
    return SGD_CYCLES + moments + mean + arithmetic - (2 + 2 * moments)
