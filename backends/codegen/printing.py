"""Print expressions, assignments and conditional statements as C++17, which is also valid in CUDA and in codelets."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from snnc.compiler.neurons.expression import Assignment, Call, Expression, Number, Symbol

Real: TypeAlias = Literal["float", "double"]

_SUM: Final = 1
_PRODUCT: Final = 2
_UNARY: Final = 3
"""Precedence of C++ operators, ascending."""
_INFIX: Final[Mapping[str, tuple[str, int]]] = {"add": ("+", _SUM), "sub": ("-", _SUM), "mul": ("*", _PRODUCT), "div": ("/", _PRODUCT)}
COMPARED: Final[Mapping[str, str]] = {"spike": ">", "spike_ge": ">=", "gt": ">", "ge": ">="}
"""Comparison -> its C++ operator; spikes compare a value with 0."""
_ZERO: Final[Expression] = Number(0.0)
_MATH: Final[Mapping[str, str]] = {"abs": "fabs", "min": "fmin", "max": "fmax"}
"""Functions with another name in ``<cmath>``."""


@dataclass(frozen=True)
class Guarded:
    """A statement that runs only if `condition`, a C++ expression, is true; the macro ``statement`` of ``statement.jinja`` prints it."""

    condition: str
    statement: Statement


Statement: TypeAlias = str | Guarded


def c_literal(value: float, real: Real = "float") -> str:
    """Return the shortest literal of `value`, rounded to the type `real`."""
    if real == "float":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if not math.isfinite(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    return f"{np.float32(value)!s}f" if real == "float" else repr(value)


def c_expression(expression: Expression) -> str:
    """Print `expression` in ``float``, with only the parentheses that it needs.

    ``detach(x)`` is printed as ``x``, and ``float16(x)`` as a call of ``rounded_to_half`` in ``half_states.hpp``.
    """
    return _Printer("float", {}).text(expression)


def c_assignments(
    assignments: Iterable[Assignment],
    real: Real = "float",
    names: Mapping[str, str] | None = None,
    stores: Collection[str] = (),
) -> list[str]:
    """Print straight-line code, one statement per assignment; expressions as :func:`c_expression` prints them.

    `real` is the type of all values, for which the functions of ``<cmath>`` are chosen (``expf``, ``exp``). `names` maps names to the C++
    that is printed for them, without operators, such as ``s0[n]``; other names are printed unchanged. The assigned names in `stores` are
    already declared; all others are declared ``const`` at their assignment.
    """
    printer = _Printer(real, names or {})
    return [
        f"{'' if a.target in stores else f'const {real} '}{printer.names.get(a.target, a.target)} = {printer.text(a.value)};"
        for a in assignments
    ]


class _Printer:
    def __init__(self, real: Real, names: Mapping[str, str]) -> None:
        self.real: Real = real
        self.names = names

    def text(self, expression: Expression, outer: int = 0) -> str:
        """Return an expression as an operand of an operator of precedence `outer`; 0: it is not an operand."""
        match expression:
            case Number(value):
                text = c_literal(value, self.real)
                return f"({text})" if text.startswith("-") and outer else text
            case Symbol(name):
                return self.names.get(name, name)
            case Call("detach", (operand,)):
                return self.text(operand, outer)
            case Call("neg", (operand,)):
                text = f"-{self.text(operand, _UNARY)}"
                return f"({text})" if outer > _SUM else text
            case Call("add" | "sub" | "mul" | "div" as function, (left, right)):
                sign, level = _INFIX[function]
                text = f"{self.text(left, level)} {sign} {self.text(right, level + 1)}"
                return f"({text})" if outer > level else text
            case Call("float16", (operand,)):
                return f"rounded_to_half({self.text(operand)})"
            case Call("sigmoid", (operand,)):
                one = c_literal(1, self.real)
                text = f"{one} / ({one} + {self._function('exp')}(-{self.text(operand, _UNARY)}))"
                return f"({text})" if outer > _PRODUCT else text
            case Call("spike" | "spike_ge" | "gt" | "ge"):
                return f"({self._condition(expression)} ? {c_literal(1, self.real)} : {c_literal(0, self.real)})"
            case Call("where", (condition, left, right)):
                return f"({self._condition(condition)} ? {self.text(left)} : {self.text(right)})"
            case Call("sign", (operand,)):
                signed, zero = self.text(operand, _SUM), c_literal(0, self.real)
                return f"{self.real}(({signed} > {zero}) - ({signed} < {zero}))"
            case Call(function, args):
                return f"{self._function(_MATH.get(function, function))}({', '.join(self.text(a) for a in args)})"
        raise TypeError(expression)

    def _condition(self, expression: Expression) -> str:
        """Return an expression as a C++ condition; numbers are compared with 0."""
        match expression:
            case Call("spike" | "spike_ge" as function, (operand,)):
                sign, left, right = COMPARED[function], operand, _ZERO
            case Call("gt" | "ge" as function, (first, second)):
                sign, left, right = COMPARED[function], first, second
            case _:
                sign, left, right = "!=", expression, _ZERO
        return f"{self.text(left, _SUM)} {sign} {self.text(right, _SUM)}"

    def _function(self, name: str) -> str:
        return f"{name}f" if self.real == "float" else name
