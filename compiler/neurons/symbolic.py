"""Conversion of expressions to SymPy and back, for the derivation of adjoints.

Sums, products, quotients and numeric powers become nodes of SymPy. Every other function of the equation language is a class in
:data:`CLASSES`, which defines derivatives (``fdiff``) and no rewriting rules, so that SymPy does not change the author's expressions. SymPy
does not parse text: its objects are created directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from types import new_class
from typing import Any, Final, TypeAlias

import sympy

from snnc.compiler.errors import EquationError
from snnc.compiler.neurons.expression import Call, Expression, Number, Symbol

Sympy: TypeAlias = Any
"""A SymPy expression (SymPy has no type information)."""


def _function(name: str, *derivatives: Callable[..., Sympy] | None) -> Any:
    """Return the class `name` of a function.

    Each of `derivatives` gets the function's value and its arguments, and returns the derivative with respect to one argument; None: 0.
    """

    def fdiff(self: Sympy, argindex: int = 1) -> Sympy:
        derivative = derivatives[argindex - 1]
        return sympy.S.Zero if derivative is None else derivative(self, *self.args)

    return new_class(name, (sympy.Function,), exec_body=lambda body: body.update(nargs=len(derivatives), fdiff=fdiff))


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
_NAMES: Final = {kind: name for name, kind in CLASSES.items()}
_LARGEST_PRODUCT: Final = 4
"""Largest exponent for which a power is written as a product."""


def _number(value: float) -> Sympy:
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
            return _number(value)
        case Symbol(name):
            return sympy.Symbol(name)
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
    return _number(value)


def _grouped(base: Sympy) -> Sympy:
    """Return a base or divisor in a form from which SymPy extracts no factors."""
    return PowerBase(base) if base.is_Add else base


def from_sympy(expression: Sympy, name: Callable[[Expression], Expression]) -> Expression:
    """Convert the result of :func:`to_sympy` back to cheap code: small powers as products, quotients of products, folded constants.

    `name` assigns a name to a subexpression that is used more than once, and returns its symbol.
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
    try:
        value = float(expression)
    except OverflowError:
        value = math.inf
    _check_finite(value)
    return Number(value)


def _negated(expression: Expression) -> Expression:
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
        return [base if isinstance(base, Symbol) else name(base)] * int(exponent)
    return [Call("pow", (base, Number(exponent)))]


def _chain(factors: list[Expression]) -> Expression:
    return reduce(lambda product, factor: Call("mul", (product, factor)), factors)
