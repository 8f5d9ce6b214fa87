"""Conversion of expressions to SymPy and back, for the derivation of adjoints.

Only sums, products, quotients and numeric powers become nodes of SymPy; every other function of the language is a class
of :mod:`snnc.compiler.neurons.symbolic_functions`. SymPy does not parse text: its objects are created directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import sympy

from snnc.compiler.errors import EquationError
from snnc.compiler.neurons.expression import Call, Expression, Number, Symbol
from snnc.compiler.neurons.symbolic_functions import CLASSES, Power, PowerBase, Sympy

_LARGEST_PRODUCT: Final = 4
"""Largest exponent for which a power is written as a product."""
_NAMES: Final = {kind: name for name, kind in CLASSES.items()}


def symbol(name: str) -> Sympy:
    """Return the SymPy symbol of a name."""
    return sympy.Symbol(name)


def number(value: float) -> Sympy:
    """Return the SymPy number of a constant.

    Only -1, 0 and 1 become integers, so that products with them simplify: SymPy computes exactly with integers, and a user's
    nested powers of integers might not terminate; floating-point numbers have a bounded size.
    """
    _check_finite(value)
    return sympy.Integer(int(value)) if value in (-1.0, 0.0, 1.0) else sympy.Float(value)


def _check_finite(value: float) -> None:
    if not math.isfinite(value):
        raise EquationError("a constant of the equations is not finite.")


def to_sympy(expression: Expression) -> Sympy:
    """Convert `expression`; constant parts are folded in double precision."""
    match expression:
        case Number(value):
            return number(value)
        case Symbol(name):
            return symbol(name)
        case Call("add", (left, right)):
            return to_sympy(left) + to_sympy(right)
        case Call("sub", (left, right)):
            return to_sympy(left) - to_sympy(right)
        case Call("mul", (left, right)):
            return to_sympy(left) * to_sympy(right)
        case Call("div", (left, right)):
            divisor = to_sympy(right)
            if divisor.is_zero:
                raise EquationError("the equations divide by the constant 0.")
            return to_sympy(left) / _grouped(divisor)
        case Call("neg", (operand,)):
            return -to_sympy(operand)
        case Call("pow", (base, exponent)):
            return _power(to_sympy(base), to_sympy(exponent))
        case Call(function, args):
            return CLASSES[function](*(to_sympy(a) for a in args))
    raise TypeError(expression)


def _power(base: Sympy, exponent: Sympy) -> Sympy:
    """Return a power; if base and exponent are numbers, it is evaluated, and may be infinite or NaN."""
    if not exponent.is_Number:
        return Power(base, exponent)
    if not base.is_Number:
        return _grouped(base) ** (sympy.Integer(int(exponent)) if exponent == int(exponent) else exponent)
    try:
        value = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if isinstance(value, complex):
        value = math.nan
    return number(value)


def _grouped(base: Sympy) -> Sympy:
    return PowerBase(base) if base.is_Add else base


def from_sympy(expression: Sympy, name: Callable[[Expression], Expression]) -> Expression:
    """Convert back to cheap code: small powers as products, quotients of products, folded constants.

    Parameters
    ----------
    expression
        Expression with the nodes of :func:`to_sympy`.
    name
        Function that assigns a name to a subexpression that is used more than once, and returns its symbol.
    """
    if expression.is_Symbol:
        return Symbol(expression.name)
    if expression.is_Number:
        return _constant(expression)
    if expression.is_Add:
        return _sum(expression, name)
    if isinstance(expression, PowerBase):
        return from_sympy(expression.args[0], name)
    if expression.is_Mul or expression.is_Pow:
        sign, product = _product(expression, name)
        return _negated(product) if sign < 0 else product
    return Call(_NAMES[type(expression)], tuple(from_sympy(a, name) for a in expression.args))


def _constant(expression: Sympy) -> Number:
    """Return a number, which must be finite."""
    try:
        value = float(expression)
    except OverflowError:
        value = math.inf
    _check_finite(value)
    return Number(value)


def _negated(expression: Expression) -> Expression:
    """Return the negated expression, with the sign in a constant if there is one."""
    match expression:
        case Number(value):
            return Number(-value)
        case Call("mul", (Number(value), rest)):
            return Call("mul", (Number(-value), rest))
        case _:
            return Call("neg", (expression,))


def _sum(expression: Sympy, name: Callable[[Expression], Expression]) -> Expression:
    """Return a sum: negative terms are subtracted, and constants come last, unless a positive constant saves a negation."""
    terms = [_product(term, name) for term in expression.as_ordered_terms()]
    terms.sort(key=lambda term: (isinstance(term[1], Number), term[0] < 0))
    if all(sign < 0 for sign, _ in terms[:1]) and isinstance(terms[-1][1], Number) and terms[-1][0] > 0:
        terms.insert(0, terms.pop())
    sign, total = terms[0]
    if sign < 0:
        total = _negated(total)
    for sign, term in terms[1:]:
        total = Call("sub" if sign < 0 else "add", (total, term))
    return total


def _product(expression: Sympy, name: Callable[[Expression], Expression]) -> tuple[int, Expression]:
    """Return the sign of a term, and the product without it."""
    if expression.is_Number:
        value = _constant(expression).value
        return (-1 if value < 0 else 1), Number(abs(value))
    coefficient, rest = expression.as_coeff_Mul()
    value = _constant(coefficient).value
    above: list[Expression] = []
    below: list[Expression] = []
    for factor in rest.as_ordered_factors():
        if factor.is_Pow and factor.exp.is_Number:
            exponent = _constant(factor.exp).value
            side = below if exponent < 0 else above
            side.extend(_factors(from_sympy(factor.base, name), abs(exponent), name))
        elif factor.is_Pow:
            above.append(Call("pow", (from_sympy(factor.base, name), from_sympy(factor.exp, name))))
        else:
            above.append(from_sympy(factor, name))
    if abs(value) != 1 or not above:
        above.insert(0, Number(abs(value)))
    result = _chain(above)
    if below:
        result = Call("div", (result, _chain(below)))
    return (-1 if value < 0 else 1), result


def _factors(base: Expression, exponent: float, name: Callable[[Expression], Expression]) -> list[Expression]:
    """Return the factors of a power; a small whole exponent becomes repeated factors."""
    if exponent == 1:
        return [base]
    if exponent == 0.5:
        return [Call("sqrt", (base,))]
    if exponent == int(exponent) and exponent <= _LARGEST_PRODUCT:
        named = base if isinstance(base, Symbol) else name(base)
        return [named] * int(exponent)
    return [Call("pow", (base, Number(exponent)))]


def _chain(factors: list[Expression]) -> Expression:
    total = factors[0]
    for factor in factors[1:]:
        total = Call("mul", (total, factor))
    return total
