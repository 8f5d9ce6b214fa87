"""Cycles of a kernel's arithmetic, from the operations in its printed code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from snnc.compiler.losses.update_rules import UpdateRule
from snnc.compiler.neurons.expression import Assignment
from snnc.compiler.neurons.operation_counts import operation_counts

PAIR_CYCLES: Final[Mapping[str, int]] = {
    # one bundle for two floats in registers (f32v2 instructions)
    **dict.fromkeys(("add", "mul", "neg", "abs"), 1),
    # a comparison gives a mask, and the mask is combined with 1.0
    "compare": 2,
    # and, and-not, or
    "select": 3,
    # PopLibs cycle estimates for two floats: division and square root 10, exp 6, tanh 12
    **dict.fromkeys(("div", "sqrt"), 10),
    "exp": 6,
    "log": 6,  # [R] as exp
    "tanh": 12,
    "pow": 14,  # exp(b * log(a)): 6 + 6, the product and a move
    "erf": 40,  # [R] a polynomial in software
    **dict.fromkeys(("sin", "cos"), 60),  # [R] software
}
"""Worker cycles of one operation, for one float or two; comments give sources, and [R] marks numbers without a source."""
SGD_CYCLES: Final = 5
"""Worker cycles of plain gradient descent on one parameter: load the gradient and the parameter, a product, a sum, store."""

MEAN_CYCLES: Final = 5
"""Worker cycles of the mean over accumulated gradients: load the stored sum, add, a product, store the mean, store 0."""

SQUARE_CYCLES: Final = 3
"""Worker cycles of a square in the norm of the gradients: load, a product, a sum."""


def square_cycles(rule: UpdateRule, *, accumulates: bool) -> int:
    """Worker cycles in which a gradient is added to the norm; 0 if no norm is needed. With loss scaling, it is first divided."""
    if rule.clip_norm is None and rule.loss_scale is None:
        return 0
    scaled = int(rule.loss_scale is not None)
    return SQUARE_CYCLES + scaled + pair_cycles(rule.clipped) + (MEAN_CYCLES if accumulates else 0)


def pair_cycles(assignments: Iterable[Assignment]) -> int:
    """Worker cycles of the arithmetic of `assignments` for one neuron (or two in vectors), without loads and stores."""
    return sum(PAIR_CYCLES[kind] * number for kind, number in operation_counts(assignments).items())


def update_cycles(rule: UpdateRule, *, accumulates: bool = False) -> int:
    """Worker cycles in which an optimiser changes a parameter; with `accumulates`, by the mean of its gradients from several batches.

    A rule with a square root updates two parameters at once: loads of the gradients and of all stored numbers, arithmetic, stores, a
    branch. A rule without one updates them singly: to :data:`SGD_CYCLES` it adds a cycle for each moment, and one for each operation that
    plain descent and momentum do not have.
    """
    arithmetic, moments = pair_cycles(rule.step), len(rule.moments)
    mean = (MEAN_CYCLES if accumulates else 0) + (rule.loss_scale is not None)
    if "sqrt" in operation_counts(rule.step):
        return (arithmetic + mean + 2 + 2 * len(rule.changed_arrays)) // 2
    return SGD_CYCLES + moments + mean + arithmetic - (2 + 2 * moments)
