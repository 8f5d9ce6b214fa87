"""Equations of kernels as C++ expressions, and the loads that they need.

Their type ``Real`` is ``float`` (one neuron) or ``float2`` (two neurons); ``runtime/codelets/lanes.hpp`` defines the operations of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from snnc.backends.codegen.printing import COMPARED, c_literal
from snnc.compiler.neurons.expression import Assignment, Call, Expression, Number, Symbol

ZERO: Final = "splat<Real>(0.0f)"
ONE: Final = "splat<Real>(1.0f)"
_INFIX: Final[Mapping[str, str]] = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_EACH: Final[Mapping[str, str]] = {
    **{name: f"{name}f" for name in ("pow", "exp", "log", "sqrt", "tanh", "erf", "sin", "cos")},
    **{"abs": "fabsf", "min": "fminf", "max": "fmaxf", "float16": "rounded_to_half"},
}
"""Functions that are called for each neuron: those of ``<cmath>``, and one of ``runtime/codelets/half_states.hpp``."""


def loads(names: Iterable[str], places: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the template data that loads each of `names` from its place in memory, if `places` has one."""
    wanted = set(names)
    return [{"name": name, "value": load(place)} for name, place in places.items() if name in wanted]


def load(place: str) -> str:
    """Return the C++ that loads values from `place` on, or one value for all neurons if `place` is a dereferenced pointer (``*p``)."""
    return f"splat<Real>({place})" if place.startswith("*") else f"load<Real>(&{place})"


def load_difference(place: str, offset: Expression) -> str:
    """Return the C++ that loads values stored from `place` on as float16 differences from `offset`."""
    stored = load_half(place)
    return stored if offset == Number(0.0) else f"{stored} + {_text(offset)}"


def offset_from(value: str, offset: Expression) -> str:
    """Return the C++ of the difference that is stored so that :func:`load_difference` returns `value`."""
    return value if offset == Number(0.0) else f"{value} - {_text(offset)}"


def pointer(kind: str, name: str, place: str) -> dict[str, str]:
    """Return the template data of a pointer to the elements of `kind` from `place` on."""
    return {"kind": kind, "name": name, "place": place}


def load_half(place: str) -> str:
    """Return the C++ that loads float16 values from `place` on, with the function ``recall`` of ``runtime/codelets/halves.hpp``."""
    return f"recall<Real>(&{place})"


def equations(assignments: Iterable[Assignment]) -> list[dict[str, str]]:
    """Return the template data of assignments."""
    return [{"name": a.target, "value": _text(a.value)} for a in assignments]


def _text(expression: Expression) -> str:
    """Return an expression as C++, in parentheses if it contains an operator."""
    match expression:
        case Number(value):
            return f"splat<Real>({c_literal(value)})"
        case Symbol(name):
            return name
        case Call("detach", (operand,)):
            return _text(operand)
        case Call("neg", (operand,)):
            return f"(-{_text(operand)})"
        case Call("add" | "sub" | "mul" | "div" as function, (left, right)):
            return f"({_text(left)} {_INFIX[function]} {_text(right)})"
        case Call("sigmoid", (operand,)):
            return f"({ONE} / ({ONE} + each(-{_text(operand)}, expf)))"
        case Call("spike" | "spike_ge" | "gt" | "ge"):
            return f"ones({_condition(expression)})"
        case Call("where", (condition, left, right)):
            return f"choose({_condition(condition)}, {_text(left)}, {_text(right)})"
        case Call("sign", (operand,)):
            return f"(ones({_text(operand)} > {ZERO}) - ones({_text(operand)} < {ZERO}))"
        case Call(function, args):
            return f"each({', '.join(map(_text, args))}, {_EACH[function]})"
    raise TypeError(expression)


def _condition(expression: Expression) -> str:
    match expression:
        case Call("spike" | "spike_ge" as function, (operand,)):
            return f"{_text(operand)} {COMPARED[function]} {ZERO}"
        case Call("gt" | "ge" as function, (left, right)):
            return f"{_text(left)} {COMPARED[function]} {_text(right)}"
        case _:
            return f"{_text(expression)} != {ZERO}"
