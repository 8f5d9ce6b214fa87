"""Print a neuron's equations as in papers: numbers in place of parameters, and ``[t-1]`` for values of the previous step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from snnc.compiler.ir.graph import Array, Population
from snnc.compiler.neurons.expression import Call, Expression, Number, Symbol, substitute, transform
from snnc.compiler.neurons.interpret import FUNCTIONS
from snnc.compiler.neurons.neuron import NeuronModel

_Terms: TypeAlias = list[tuple[int, Expression]]
"""Terms of a sum, each with its sign, 1 or -1."""
_COMPARISONS: Final = {"spike": ">", "spike_ge": ">=", "gt": ">", "ge": ">="}


def readable(population: Population) -> list[str]:
    """Return the equations of a population, one line each.

    ``[t-1]`` marks a value of the previous step, ``[t]`` one of this step. If ``v`` is assigned twice in a step, the first value is called
    ``v_pre[t]``; with more assignments, ``v_1[t]``, ``v_2[t]`` … ``H(x > y)`` is 1 if the comparison is true, else 0. Parameters with the
    same value for all neurons, and variables that only copy a value, are replaced by the value.
    """
    model = population.model
    numbers = {name: value for name, value in parameter_values(population).items() if isinstance(value, float)}
    return [f"{target} = {text(value)}" for target, value in _lines(model, numbers)]


def parameter_values(population: Population) -> dict[str, float | Array]:
    """Return each parameter of the model: a number if all neurons have the same value, else an array."""
    values: dict[str, float | Array] = {}
    for name, default in population.model.parameters.items():
        array = np.asarray(population.parameters.get(name, default), np.float64)
        uniform = array.size > 0 and bool((array == array.flat[0]).all())
        values[name] = float(f"{array.flat[0]:.7g}") if uniform else array
    return values


def range_text(value: float | Array) -> str:
    """Return a value, or those of an array, as text: ``0.5`` if all are equal, else the smallest and the largest, ``0.1 … 0.9``."""
    least, most = float(np.min(value)), float(np.max(value))
    return f"{least:g}" if least == most else f"{least:g} … {most:g}"


def _lines(model: NeuronModel, numbers: Mapping[str, float]) -> list[tuple[str, Expression]]:
    times = Counter(a.target for a in model.equations)
    scope: dict[str, Expression] = {name: Symbol(f"{name}[t]") for name in model.inputs}
    scope |= {name: Symbol(f"{name}[t-1]") for name in model.states}
    scope |= {name: Number(value) for name, value in numbers.items()}
    assigned: Counter[str] = Counter()
    lines = []
    for line in model.equations:
        target, value = line.target, simplified(substitute(line.value, scope))
        assigned[target] += 1
        if isinstance(value, Symbol | Number) and target not in {*model.outputs, *model.states} and times[target] == 1:  # a copy
            scope[target] = value
            continue
        name = _version(target, assigned[target], times[target], model)
        scope[target] = Symbol(name)
        lines.append((name, value))
    return lines


def _version(name: str, number: int, times: int, model: NeuronModel) -> str:
    if number == times:
        return f"{name}[t]"
    used = {*model.inputs, *model.states, *model.parameters, *(a.target for a in model.equations)}
    version = f"{name}_pre" if times == 2 else f"{name}_{number}"
    while version in used:
        version += "_"
    return f"{version}[t]"


def simplified(expression: Expression) -> Expression:
    """Simplify an expression: remove ``detach``, multiplication by 1 or 0 and addition of 0, and evaluate arithmetic of numbers."""
    return transform(expression, _rule)


def _rule(e: Expression) -> Expression:
    match e:
        case Call("detach", (inner,)):
            return inner
        case Call("neg", (Number(value),)):
            return Number(-value)
        case Call("neg", (Call("neg", (inner,)),)):
            return inner
        case Call("add" | "sub" | "mul" | "min" | "max" as function, (Number(a), Number(b))):
            return Number(float(FUNCTIONS[function](a, b)))
        case Call("mul", (Number(0.0), _)) | Call("mul", (_, Number(0.0))):
            return Number(0.0)
        case Call("mul", (Number(1.0), other)) | Call("mul", (other, Number(1.0))):
            return other
        case Call("mul", (Number(-1.0), other)) | Call("mul", (other, Number(-1.0))):
            return Call("neg", (other,))
        case Call("div", (Number(a), Number(b))) if b:
            return Number(a / b)
        case Call("div", (other, Number(1.0))):
            return other
        case Call("add", (Number(0.0), other)) | Call("add", (other, Number(0.0))) | Call("sub", (other, Number(0.0))):
            return other
        case Call("sub", (Number(0.0), other)):
            return Call("neg", (other,))
    return e


def text(expression: Expression) -> str:
    """Print `expression`: products without an operator, like terms combined, a positive term first if there is one."""
    return _sum(_terms(expression, 1))


def _sum(terms: _Terms) -> str:
    coefficients: dict[tuple[str, str], float] = {}
    for sign, term in terms:
        coefficient, above, below = _product(sign, term)
        coefficients[above, below] = coefficients.get((above, below), 0.0) + coefficient
    shown = [(c, *body) for body, c in coefficients.items() if c]
    first = next((n for n, (c, *_) in enumerate(shown) if c > 0), 0)
    ordered = shown[first : first + 1] + shown[:first] + shown[first + 1 :]
    parts = [f"{'-' if c < 0 else '+'} {_scaled(abs(c), above, below)}" for c, above, below in ordered]
    joined = " ".join(parts)
    return f"-{joined[2:]}" if joined.startswith("- ") else joined[2:] or "0"


def _scaled(coefficient: float, above: str, below: str) -> str:
    number = f"{coefficient:.6g}"
    upper = above if number == "1" and above else f"{number} {above}".rstrip()
    return f"{upper} / {below}" if below else upper


def _terms(e: Expression, sign: int) -> _Terms:
    match e:
        case Call("add", (a, b)):
            return [*_terms(a, sign), *_terms(b, sign)]
        case Call("sub", (a, b)):
            return [*_terms(a, sign), *_terms(b, -sign)]
        case Call("neg", (a,)):
            return _terms(a, -sign)
    return [(sign, e)]


def _product(sign: int, term: Expression) -> tuple[float, str, str]:
    """Split a term into coefficient, numerator and denominator."""
    above: list[Expression] = []
    below: list[Expression] = []
    _factors(term, above, below)
    coefficient = float(sign)
    for factor in above:
        coefficient *= factor.value if isinstance(factor, Number) else 1.0
    for factor in below:
        coefficient /= factor.value if isinstance(factor, Number) and factor.value else 1.0
    upper = " ".join(_atom(f) for f in above if not isinstance(f, Number))
    divisors = [_atom(f) for f in below if not isinstance(f, Number) or not f.value]
    return coefficient, upper, f"({' '.join(divisors)})" if len(divisors) > 1 else "".join(divisors)


def _factors(e: Expression, above: list[Expression], below: list[Expression]) -> None:
    match e:
        case Call("mul", (a, b)):
            _factors(a, above, below)
            _factors(b, above, below)
        case Call("div", (a, b)):
            _factors(a, above, below)
            _factors(b, below, above)
        case Call("neg", (a,)):
            above.append(Number(-1.0))
            _factors(a, above, below)
        case _:
            above.append(e)


def _atom(e: Expression) -> str:
    match e:
        case Symbol(name):
            return name
        case Number(value):
            return f"{value:.6g}" if value >= 0 else f"({value:.6g})"
        case Call("add" | "sub" | "neg"):
            return f"({text(e)})"
        case Call("spike" | "spike_ge" as function, (a,)):
            return f"H({_comparison(a, _COMPARISONS[function])})"
        case Call("gt" | "ge" as function, (a, b)):
            return f"H({text(a)} {_COMPARISONS[function]} {text(b)})"
        case Call("where", (Call("gt" | "ge" as function, (a, b)), yes, no)):
            return f"({text(yes)} if {text(a)} {_COMPARISONS[function]} {text(b)} else {text(no)})"
        case Call("where", (condition, yes, no)):
            return f"({text(yes)} if {text(condition)} != 0 else {text(no)})"
        case Call("pow", (base, exponent)):
            return f"{_tight(base)}^{_tight(exponent)}"
        case Call(function, args):
            return f"{function}({', '.join(map(text, args))})"
    raise TypeError(e)


def _tight(e: Expression) -> str:
    return _atom(e) if isinstance(e, Symbol | Number) else f"({text(e)})"


def _comparison(argument: Expression, sign: str) -> str:
    """Print ``argument > 0`` with numbers and subtracted terms on the right-hand side."""
    left: _Terms = []
    right: _Terms = []
    for s, term in _terms(argument, 1):
        if isinstance(term, Number) or _product(s, term)[0] < 0:
            right.append((-s, term))
        else:
            left.append((s, term))
    return f"{_sum(left)} {sign} {_sum(right)}"
