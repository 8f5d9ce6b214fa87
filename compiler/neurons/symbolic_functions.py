"""Functions of the equation language as SymPy classes.

Each class defines derivatives (``fdiff``), in terms of its own value if that is cheaper, and no rewriting rules, so that
SymPy does not change the author's expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import new_class
from typing import Any, Final, TypeAlias

import sympy

Sympy: TypeAlias = Any
"""A SymPy expression (SymPy has no type information)."""


class Elementwise(sympy.Function):  # type: ignore[misc]
    """A function of the equation language, opaque to SymPy except for its derivatives."""


Derivative: TypeAlias = Callable[..., Sympy]
"""(value of the function, arguments) -> derivative with respect to one argument."""


def _function(name: str, *derivatives: Derivative | None) -> Any:
    """Return the class `name`: a function with one derivative for each of its arguments (None: 0)."""

    def fdiff(self: Sympy, argindex: int = 1) -> Sympy:
        derivative = derivatives[argindex - 1]
        return sympy.S.Zero if derivative is None else derivative(self, *self.args)

    return new_class(name, (Elementwise,), exec_body=lambda body: body.update(nargs=len(derivatives), fdiff=fdiff))


Sign: Final[Sympy] = _function("Sign", None)
Gt: Final[Sympy] = _function("Gt", None, None)
Ge: Final[Sympy] = _function("Ge", None, None)
Exp: Final[Sympy] = _function("Exp", lambda exp, x: exp)
Log: Final[Sympy] = _function("Log", lambda log, x: 1 / x)
Sin: Final[Sympy] = _function("Sin", lambda sin, x: Cos(x))
Cos: Final[Sympy] = _function("Cos", lambda cos, x: -Sin(x))
Power: Final[Sympy] = _function("Power", lambda power, x, n: n * Power(x, n - 1), lambda power, x, n: power * Log(x))
Where: Final[Sympy] = _function("Where", None, lambda where, c, a, b: Where(c, 1, 0), lambda where, c, a, b: Where(c, 0, 1))
Detach: Final[Sympy] = _function("Detach", None)
PowerBase: Final[Sympy] = _function("PowerBase", lambda base, x: sympy.S.One)
"""Base of a power that is a sum: versions of SymPy differ in the factors that they extract from sums."""

CLASSES: Final[Mapping[str, Any]] = {
    "exp": Exp,
    "log": Log,
    "sqrt": _function("Sqrt", lambda sqrt, x: 1 / (2 * sqrt)),
    "abs": _function("Abs", lambda abs_, x: Sign(x)),  # 0 at 0
    "sign": Sign,
    "tanh": _function("Tanh", lambda tanh, x: 1 - tanh**2),
    "sigmoid": _function("Sigmoid", lambda sigmoid, x: sigmoid * (1 - sigmoid)),
    "erf": _function("Erf", lambda erf, x: sympy.Float(2 / math.sqrt(math.pi)) * Exp(-(x**2))),
    "sin": Sin,
    "cos": Cos,
    "pow": Power,  # with an exponent that is not a constant
    "min": _function("Min", lambda min_, a, b: Ge(b, a), lambda min_, a, b: Gt(a, b)),  # if equal, the first argument has the derivative 1
    "max": _function("Max", lambda max_, a, b: Ge(a, b), lambda max_, a, b: Gt(b, a)),
    "gt": Gt,
    "ge": Ge,
    "where": Where,
    "detach": Detach,
    "float16": _function("Float16", lambda rounded, x: sympy.S.One),
    "spike": _function("Spike", None),  # partial_derivatives replaces its derivative with the surrogate
    "spike_ge": _function("SpikeGe", None),
}
"""SymPy classes by function of the equation language."""
