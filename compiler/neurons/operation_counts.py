"""Numbers of operations in a list of assignments, by kind, for cost models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

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
