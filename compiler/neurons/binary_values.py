"""Detection of forward values that are 0 or 1 by construction."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from snnc.compiler.neurons.expression import Assignment, Call, Expression, Number, Symbol


def binary_names(assignments: Iterable[Assignment]) -> frozenset[str]:
    """Return the names whose value is provably 0 or 1."""
    found: set[str] = set()
    for assignment in assignments:
        if is_binary(assignment.value, found):
            found.add(assignment.target)
    return frozenset(found)


def is_binary(expression: Expression, known: Collection[str] = ()) -> bool:
    """Return whether `expression` is 0 or 1 by construction; `known` are names with such values.

    These are spikes, comparisons, the constants 0 and 1, and products, minima, maxima, complements and selections of such values.
    """
    match expression:
        case Number(value):
            return value in (0.0, 1.0)
        case Symbol(name):
            return name in known
        case Call("spike" | "spike_ge" | "gt" | "ge"):
            return True
        case Call("mul" | "min" | "max", (left, right)):
            return is_binary(left, known) and is_binary(right, known)
        case Call("sub", (Number(1.0), operand)) | Call("detach" | "abs" | "sign" | "sqrt" | "float16", (operand,)):
            return is_binary(operand, known)
        case Call("where", (_, left, right)):
            return is_binary(left, known) and is_binary(right, known)
        case _:
            return False
