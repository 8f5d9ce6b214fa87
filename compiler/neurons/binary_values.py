"""Find values whose equations show that they are always 0 or 1."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from snnc.compiler.neurons.expression import Assignment, Call, Expression, Number, Symbol


def binary_names(assignments: Iterable[Assignment]) -> frozenset[str]:
    """Return the names whose values are always 0 or 1; each name is assigned once."""
    binary: set[str] = set()
    for assignment in assignments:
        if is_binary(assignment.value, binary):
            binary.add(assignment.target)
    return frozenset(binary)


def is_binary(expression: Expression, known: Collection[str] = ()) -> bool:
    """Return whether the form of `expression` shows that it is always 0 or 1, if the names `known` are.

    It does for spikes, comparisons, and the constants 0 and 1; for products, minima, maxima, complements ``1 - x`` and selections of such
    values; and for ``abs``, ``sign``, ``sqrt``, ``float16`` and ``detach`` of such a value.
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
