"""Library of surrogates, which replace the derivative of a spike: that of the step function is 0 almost everywhere.

x is the membrane potential minus the threshold. Formulas are those of snnTorch 1.0 if it has a surrogate with this name.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Final

from snnc.compiler.errors import EquationError, SurrogateValueError, UnknownSurrogateError
from snnc.compiler.neurons.expression import Expression, Number, Symbol, call, parse_expression, symbols
from snnc.compiler.neurons.single_assignment import without_detach
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

_X: Final = Symbol("x")
_ABS: Final = call("abs", _X)


def atan(alpha: float = 2.0) -> Surrogate:
    """``(alpha/2) / (1 + (pi/2 alpha x)^2)`` (Fang et al. 2021, "Incorporating learnable membrane time constant"); snnTorch's default."""
    scaled = call("mul", math.pi / 2 * _positive("atan", "alpha", alpha), _X)
    return Surrogate("atan", call("div", alpha / 2, call("add", 1, call("pow", scaled, 2))), {"alpha": alpha})


def fast_sigmoid(slope: float = 25.0) -> Surrogate:
    """``1 / (1 + slope |x|)^2`` (Zenke & Ganguli 2018, "SuperSpike")."""
    return Surrogate("fast_sigmoid", _fast_sigmoid(_positive("fast_sigmoid", "slope", slope)), {"slope": slope})


def superspike(beta: float = 10.0) -> Surrogate:
    """``1 / (1 + beta |x|)^2`` with the slope of Cramer et al. 2022, "The Heidelberg spiking data sets"."""
    return Surrogate("superspike", _fast_sigmoid(_positive("superspike", "beta", beta)), {"beta": beta})


def sparse_fast_sigmoid(slope: float = 25.0, bound: float = 1.0) -> Surrogate:
    """``fast_sigmoid`` where ``x > bound``, else 0 (Perez-Nieves & Goodman 2021, "Sparse spiking gradient descent"; snnTorch's SFS)."""
    fast = _fast_sigmoid(_positive("sparse_fast_sigmoid", "slope", slope))
    return Surrogate("sparse_fast_sigmoid", call("where", call("gt", _X, bound), fast, 0), {"slope": slope, "bound": bound})


def sigmoid(slope: float = 25.0) -> Surrogate:
    """Derivative of a steep sigmoid (Zenke & Ganguli 2018): ``slope q (1 - q)`` where q is the sigmoid of ``slope x``."""
    q = call("sigmoid", call("mul", _positive("sigmoid", "slope", slope), _X))
    return Surrogate("sigmoid", call("mul", slope, call("mul", q, call("sub", 1, q))), {"slope": slope})


def straight_through() -> Surrogate:
    """``1`` (Bengio, Leonard & Courville 2013, "Estimating or propagating gradients through stochastic neurons")."""
    return Surrogate("straight_through", Number(1.0))


def heaviside() -> Surrogate:
    """``1`` where ``x > 0``, else 0 (snnTorch's ``heaviside``)."""
    return Surrogate("heaviside", call("gt", _X, 0))


def triangular(threshold: float = 1.0) -> Surrogate:
    """``threshold`` below the threshold, ``-threshold`` at and above it: snnTorch's ``triangular`` (a triangle is `piecewise_linear`)."""
    return Surrogate("triangular", call("where", call("ge", _X, 0), -threshold, threshold), {"threshold": threshold})


def piecewise_linear(width: float = 1.0, height: float = 1.0) -> Surrogate:
    """``height max(0, 1 - |x|/width)``, a triangle (Bellec et al. 2018 with a height of 0.3)."""
    slope = call("mul", 1 / _positive("piecewise_linear", "width", width), _ABS)
    return Surrogate("piecewise_linear", call("mul", height, call("max", call("sub", 1, slope), 0)), {"width": width, "height": height})


def boxcar(width: float = 1.0, height: float = 1.0) -> Surrogate:
    """``height`` where ``|x| <= width/2``, else 0."""
    inside = call("ge", _positive("boxcar", "width", width) / 2, _ABS)
    return Surrogate("boxcar", call("mul", height, inside), {"width": width, "height": height})


def leaky_spike(slope: float = 0.1) -> Surrogate:
    """``1`` where ``x > 0``, else `slope`: the derivative of a leaky ReLU (snnTorch's LeakySpikeOperator, LSO)."""
    return Surrogate("leaky_spike", call("where", call("gt", _X, 0), 1, slope), {"slope": slope})


def spike_rate_escape(beta: float = 1.0, slope: float = 25.0) -> Surrogate:
    """``slope exp(-beta |x - 1|)`` (Gerstner & Kistler 2002, "Spiking neuron models")."""
    distance = call("abs", call("sub", _X, 1))
    return Surrogate("spike_rate_escape", call("mul", slope, call("exp", call("mul", -beta, distance))), {"beta": beta, "slope": slope})


def gaussian(sigma: float = 0.5) -> Surrogate:
    """Density of the normal distribution with standard deviation `sigma` (Yin, Corradi & Bohte 2021)."""
    factor = 1 / (_positive("gaussian", "sigma", sigma) * math.sqrt(2 * math.pi))
    exponent = call("mul", -1 / (2 * sigma * sigma), call("mul", _X, _X))
    return Surrogate("gaussian", call("mul", factor, call("exp", exponent)), {"sigma": sigma})


def custom(text: str) -> Surrogate:
    """Return a surrogate whose derivative is `text`, an expression in the equation language that reads only ``x``.

    Any other text raises an EquationError.
    """
    expression = parse_expression(text)
    others = sorted(set(symbols(expression)) - {"x"})
    if others:
        raise EquationError(f"the surrogate {text!r} reads {', '.join(others)}; it may only read x.")
    return Surrogate(f"custom({text.strip()})", without_detach(expression))


LIBRARY: Final[Mapping[str, Callable[..., Surrogate]]] = {
    factory.__name__: factory
    for factory in (
        atan,
        fast_sigmoid,
        superspike,
        sparse_fast_sigmoid,
        sigmoid,
        straight_through,
        heaviside,
        triangular,
        piecewise_linear,
        boxcar,
        leaky_spike,
        spike_rate_escape,
        gaussian,
    )
}
"""Functions that return the surrogates of the library, by name, in the order of the documentation."""


def parse_surrogate(text: str) -> Surrogate:
    """Parse ``name``, ``name:number,number`` (numbers in the order of the function's arguments) or ``custom:<text in x>``.

    Raises
    ------
    EquationError
        The text after ``custom:`` is not an expression in x.
    UnknownSurrogateError
        The library has no such surrogate.
    SurrogateValueError
        A number is invalid or out of range, or too many are given.

    Examples
    --------
    >>> str(parse_surrogate("fast_sigmoid:10"))
    'fast_sigmoid(slope=10)'
    """
    name, colon, rest = text.strip().partition(":")
    if name == "custom" and colon:
        return custom(rest)
    if name not in LIBRARY:
        raise UnknownSurrogateError(f"the surrogate {name!r} is unknown; use one of {', '.join(LIBRARY)}, or custom:<expression in x>.")
    factory = LIBRARY[name]
    allowed = tuple(inspect.signature(factory).parameters)
    values = [value.strip() for value in rest.split(",")] if colon else []
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        numbers = [math.nan]
    if len(numbers) > len(allowed) or not all(map(math.isfinite, numbers)):
        form = f"{name}:{','.join(allowed)}" if allowed else name
        raise SurrogateValueError(f"the surrogate {text!r} is invalid; write {form} with a finite number for each name.")
    return factory(*numbers)


def _fast_sigmoid(slope: float) -> Expression:
    return call("div", 1, call("pow", call("add", 1, call("mul", slope, _ABS)), 2))


def _positive(surrogate: str, name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise SurrogateValueError(f"the surrogate {surrogate} needs a positive {name}, not {value:g}.")
    return value
