"""Cycles of a kernel's arithmetic, from the operations in its printed code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from snnc.compiler.neurons.expression import Assignment
from snnc.compiler.neurons.operation_counts import operation_counts

PAIR_CYCLES: Final[Mapping[str, int]] = {
    # one bundle for two floats in registers (f32v2 instructions)
    **dict.fromkeys(("add", "mul", "neg", "abs"), 1),
    # compare to a mask, and the mask with 1.0
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
"""Worker cycles of one operation, for one float or two; sources are noted at each group."""


def pair_cycles(assignments: Iterable[Assignment]) -> int:
    """Worker cycles of the arithmetic of `assignments` for one neuron (or two in vectors), without loads and stores."""
    return sum(PAIR_CYCLES[kind] * number for kind, number in operation_counts(assignments).items())
