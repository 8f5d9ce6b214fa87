"""The functions of the equation language as sympy classes.

Each states its derivative (``fdiff``) in terms of its own value if that is cheaper, and has no rewriting rules, so
sympy does not change the author's expressions.
"""

# ruff: noqa: D102

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import sympy

Sympy: TypeAlias = Any
"""A sympy expression (sympy has no type information)."""


class Elementwise(sympy.Function):  # type: ignore[misc]
    """A function of the equation language, opaque to sympy except for its derivative."""


class Exp(Elementwise):
    """``exp``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return self


class Log(Elementwise):
    """``log``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return 1 / self.args[0]


class Sqrt(Elementwise):
    """``sqrt``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return 1 / (2 * self)


class Abs(Elementwise):
    """``abs``; its derivative at 0 is 0."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return Sign(self.args[0])


class Sign(Elementwise):
    """``sign``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return sympy.S.Zero


class Tanh(Elementwise):
    """``tanh``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return 1 - self**2


class Sigmoid(Elementwise):
    """``sigmoid``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return self * (1 - self)


class Erf(Elementwise):
    """``erf``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return sympy.Float(2 / math.sqrt(math.pi)) * Exp(-(self.args[0] ** 2))


class Sin(Elementwise):
    """``sin``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return Cos(self.args[0])


class Cos(Elementwise):
    """``cos``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return -Sin(self.args[0])


class Power(Elementwise):
    """``pow`` with an exponent that is not a constant."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> Sympy:
        base, exponent = self.args
        return exponent * Power(base, exponent - 1) if argindex == 1 else self * Log(base)


class Min(Elementwise):
    """``min``; of two equal arguments the first has the derivative 1."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> Sympy:
        first, second = self.args
        return Ge(second, first) if argindex == 1 else Gt(first, second)


class Max(Elementwise):
    """``max``; of two equal arguments the first has the derivative 1."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> Sympy:
        first, second = self.args
        return Ge(first, second) if argindex == 1 else Gt(second, first)


class Gt(Elementwise):
    """``gt``."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> Sympy:
        return sympy.S.Zero


class Ge(Gt):
    """``ge``."""

    nargs = 2


class Where(Elementwise):
    """``where``."""

    nargs = 3

    def fdiff(self, argindex: int = 1) -> Sympy:
        condition = self.args[0]
        if argindex == 1:
            return sympy.S.Zero
        return Where(condition, 1, 0) if argindex == 2 else Where(condition, 0, 1)


class Detach(Elementwise):
    """``detach``: its argument, with derivative 0."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return sympy.S.Zero


class PowerBase(Elementwise):
    """A sum raised to a power: versions of sympy differ in the factors that they extract from one."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Sympy:
        return sympy.S.One


class Spike(Elementwise):
    """``spike``: :func:`snnc.compiler.neurons.partials.partial_derivatives` puts the surrogate in place of its derivative."""

    nargs = 1


class SpikeGe(Elementwise):
    """``spike_ge``; see :class:`Spike`."""

    nargs = 1


CLASSES: Final[Mapping[str, type[Elementwise]]] = {
    "exp": Exp,
    "log": Log,
    "sqrt": Sqrt,
    "abs": Abs,
    "sign": Sign,
    "tanh": Tanh,
    "sigmoid": Sigmoid,
    "erf": Erf,
    "sin": Sin,
    "cos": Cos,
    "pow": Power,
    "min": Min,
    "max": Max,
    "gt": Gt,
    "ge": Ge,
    "where": Where,
    "detach": Detach,
    "spike": Spike,
    "spike_ge": SpikeGe,
}
