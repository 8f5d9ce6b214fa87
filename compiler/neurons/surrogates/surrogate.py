"""Surrogates: expressions that replace the derivative of ``spike(x)``, and the range of x in which they are not 0."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from snnc.compiler.errors import SurrogateValueError
from snnc.compiler.neurons.expression import Call, Expression, Number, Symbol, call


@dataclass(frozen=True)
class Surrogate:
    """The derivative that replaces that of ``spike``, a step function, in the backward pass.

    Parameters
    ----------
    name
        Name in messages and reports, for example ``"atan"``.
    derivative
        Expression in ``x``, the membrane potential minus the threshold; after :meth:`windowed_by`, also in parameters of the neuron.
    parameters
        Parameters of the formula, for reports.
    """

    name: str
    derivative: Expression
    parameters: dict[str, float] = field(default_factory=dict)
    everywhere: bool = field(default=False, metadata={"optional": True})
    """Whether no gradient window applies, because the derivative replaces that of the identity and not of a step."""

    @property
    def support(self) -> tuple[float, float] | None:
        """Range ``(low, high)`` of x outside which the derivative is exactly 0; None if it is unbounded on both sides."""
        interval = support(self.derivative)
        return None if interval == _EVERYWHERE else interval

    def windowed(self, low: float, high: float = math.inf) -> Surrogate:
        """Return the surrogate with derivative ``derivative(x)`` where ``low < x < high``, else 0.

        Without `high`, this is the two-threshold scheme of Finkbeiner et al. 2023, "Harnessing manycore processors with distributed
        memory", where ``low`` is the second threshold minus the first: neurons that spike, or whose membrane potential is between the
        thresholds, receive a gradient.

        Raises
        ------
        SurrogateValueError
            ``low < high`` does not hold, or ``low`` is not finite.

        Examples
        --------
        >>> from snnc.compiler.neurons.surrogates.library import straight_through
        >>> str(straight_through().windowed(-0.1))
        'windowed_straight_through(low=-0.1)'
        """
        if not (math.isfinite(low) and low < high):
            raise SurrogateValueError(f"the gradient window ({low:g}, {high:g}) is invalid: low < high must hold, and low must be finite.")
        parameters = {**self.parameters, "low": float(low)}
        if high < math.inf:
            parameters["high"] = float(high)
        inside = _inside(self.derivative, Number(float(low)), Number(float(high)) if high < math.inf else None)
        return Surrogate(self.name if self.name.startswith("windowed_") else f"windowed_{self.name}", inside, parameters)

    def windowed_by(self, low: str, high: str | None = None) -> Surrogate:
        """Return the surrogate of :meth:`windowed` with bounds that are parameters of the neuron; without `high`, it has no upper bound."""
        return replace(self, derivative=_inside(self.derivative, Symbol(low), None if high is None else Symbol(high)))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v:g}' for k, v in self.parameters.items())})"


def _inside(derivative: Expression, low: Expression, high: Expression | None) -> Expression:
    x = Symbol("x")
    inside = call("where", call("gt", x, low), derivative, 0)
    return inside if high is None else call("where", call("gt", high, x), inside, 0)


Interval: TypeAlias = tuple[float, float]

_EVERYWHERE: Final[Interval] = (-math.inf, math.inf)
_NOWHERE: Final[Interval] = (math.inf, -math.inf)
_ZERO_AT_ZERO: Final = frozenset({"neg", "abs", "sqrt", "sign", "tanh", "sin", "erf", "detach"})


def support(expression: Expression) -> Interval:
    """Return ``(low, high)`` such that `expression` is exactly 0 for ``x`` outside this interval.

    The interval contains the true support; it is unbounded if the support is unknown, and ``low > high`` if the
    expression is 0 for every x.
    """
    match expression:
        case Number(value):
            return _NOWHERE if value == 0 else _EVERYWHERE
        case Call("mul", (left, right)):
            return _intersection(support(left), support(right))
        case Call("div", (left, _)):
            return support(left)
        case Call("pow", (base, Number(exponent))) if exponent > 0:
            return support(base)
        case Call("add" | "sub", (left, right)):
            return _hull(support(left), support(right))
        case Call("gt" | "ge", (left, right)):
            return _positive(Call("sub", (left, right)))
        case Call("spike" | "spike_ge", (operand,)):
            return _positive(operand)
        case Call("where", (condition, then, otherwise)):
            return _hull(_intersection(support(condition), support(then)), support(otherwise))
        case Call("max", (left, right)):
            return _of_maximum(left, right)
        case Call(function, (operand,)) if function in _ZERO_AT_ZERO:
            return support(operand)
    return _EVERYWHERE


def _of_maximum(left: Expression, right: Expression) -> Interval:
    """Return the support of a maximum: ``max(a, 0)`` is 0 if a is not positive."""
    for one, other in ((left, right), (right, left)):
        if support(other) == _NOWHERE:
            return _intersection(support(one), _positive(one))
    return _hull(support(left), support(right))


def _positive(expression: Expression) -> Interval:
    """Return an interval outside which an expression ``a x + b`` or ``a |x| + b`` is below 0; unbounded for other expressions."""
    line = _line(expression)
    if line is None:
        return _EVERYWHERE
    slope, constant, folded = line
    if slope == 0:
        return _EVERYWHERE if constant >= 0 else _NOWHERE
    edge = -constant / slope
    if not folded:
        return (edge, math.inf) if slope > 0 else (-math.inf, edge)
    if slope > 0:
        return _EVERYWHERE
    return (-edge, edge) if edge >= 0 else _NOWHERE


def _line(expression: Expression) -> tuple[float, float, bool] | None:
    """Return a, b and whether x occurs as ``|x|``, for an expression ``a x + b`` or ``a |x| + b``; None for other expressions."""
    match expression:
        case Number(value):
            return 0.0, value, False
        case Symbol("x"):
            return 1.0, 0.0, False
        case Call("abs", (Symbol("x"),)):
            return 1.0, 0.0, True
        case Call("neg", (operand,)):
            return _scaled(_line(operand), -1.0)
        case Call("mul", (Number(factor), operand)) | Call("mul", (operand, Number(factor))):
            return _scaled(_line(operand), factor)
        case Call("div", (operand, Number(divisor))) if divisor != 0:
            return _scaled(_line(operand), 1 / divisor)
        case Call("add", (left, right)):
            return _sum(_line(left), _line(right))
        case Call("sub", (left, right)):
            return _sum(_line(left), _scaled(_line(right), -1.0))
    return None


def _scaled(line: tuple[float, float, bool] | None, factor: float) -> tuple[float, float, bool] | None:
    return None if line is None else (factor * line[0], factor * line[1], line[2])


def _sum(one: tuple[float, float, bool] | None, other: tuple[float, float, bool] | None) -> tuple[float, float, bool] | None:
    if one is None or other is None or (one[0] != 0 and other[0] != 0 and one[2] != other[2]):
        return None
    return one[0] + other[0], one[1] + other[1], one[2] if one[0] != 0 else other[2]


def _intersection(one: Interval, other: Interval) -> Interval:
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else _NOWHERE


def _hull(one: Interval, other: Interval) -> Interval:
    return min(one[0], other[0]), max(one[1], other[1])
