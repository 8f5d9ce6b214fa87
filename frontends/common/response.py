"""The response of a neuron: its membrane potential and outputs as linear functions of its input currents.

Responses do not depend on the choice of states, so two models can be compared by them. A model runs for a few steps from rest on
symbolic currents ``i0, i1, …``. Every value is linear in the currents, with one set of coefficients per neuron. An :class:`Oracle`
decides whether a neuron spikes, with equal decisions for equal arguments. Two models count as equivalent if their membrane potentials (for
integrators: their outputs) have equal coefficients for several patterns of spikes that the oracle chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.neurons.expression import SPIKES, Call, Expression, Number, Symbol
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.common.functions import apply

Form: TypeAlias = Array
"""Coefficients [1 + steps, neurons]: the constant, then the coefficient of each step's current."""

_STEPS: Final = 5
_TOLERANCE: Final = 3e-5
"""Relative and absolute difference up to which coefficients count as equal; see :func:`close`."""
_OF_CONSTANTS: Final = frozenset({"exp", "log", "sqrt", "abs", "tanh", "min", "max"})
"""Functions that are evaluated if their arguments do not depend on the currents."""


class NotLinearError(Exception):
    """The model is not piecewise linear in its input currents."""


@dataclass(eq=False)
class Oracle:
    """Decides whether a neuron spikes.

    Each new argument of the spike function gets the next bit of `pattern`, and keeps it in later calls. An argument that depends on no
    input current is instead compared with 0.
    """

    pattern: int
    answers: list[tuple[str, Form, Array]] = field(default_factory=list)

    def __call__(self, kind: str, argument: Form) -> Array:
        """Return 0 or 1 per neuron for ``argument > 0`` (kind ``spike``) or ``argument >= 0`` (kind ``spike_ge``)."""
        if not argument[1:].any():
            return np.asarray(argument[0] > 0 if kind == "spike" else argument[0] >= 0, np.float64)
        for known, form, answer in self.answers:
            if known == kind and close(form, argument):
                return answer
        answer = np.full(argument.shape[1], float(self.pattern >> len(self.answers) & 1))
        self.answers.append((kind, argument, answer))
        return answer


@dataclass(frozen=True, eq=False)
class Response:
    """Results of a run, with one entry per step."""

    membranes: list[Form]  # arguments of the output's spike function (membrane potential minus threshold); empty for integrators
    kinds: list[str]  # spike function of each entry of `membranes`: ``spike`` or ``spike_ge``
    values: dict[str, list[Form]]  # outputs that are not spikes, by name


def close(a: Form, b: Form) -> bool:
    """Return whether two forms are equal up to rounding.

    The absolute tolerance is multiplied by the largest entry of `b` if that is above 1. ``numpy.allclose`` is ten times slower for forms of
    a few neurons, and reading a file makes hundreds of comparisons.
    """
    sizes = np.abs(b)
    largest = float(sizes.max(initial=0.0))
    if not np.isfinite(largest):
        return bool(np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE * largest))
    return bool((np.abs(a - b) <= _TOLERANCE * max(1.0, largest) + _TOLERANCE * sizes).all())


def respond(
    model: NeuronModel,
    parameters: Mapping[str, Array],
    oracle: Oracle,
    current: tuple[Array, Array],
    neurons: int,
    initial: Mapping[str, Array] = MappingProxyType({}),
) -> Response:
    """Run `model` on symbolic currents at its first port, and on 0 at its other ports.

    The symbolic currents are multiplied by ``current[0]``, and ``current[1]`` is added. States start at `initial`, by default at zero. An
    equation that is not piecewise linear raises a NotLinearError.
    """
    scale, shift = current
    states = {s: _constant(initial.get(s, np.zeros(())), neurons) for s in model.states}
    constants = {p: _constant(np.asarray(parameters.get(p, d), np.float64).reshape(-1), neurons) for p, d in model.parameters.items()}
    spikes = [e.target for e in model.equations if isinstance(e.value, Call) and e.value.function in SPIKES]
    response = Response([], [], {})
    for t in range(_STEPS):
        input_current = _constant(shift, neurons)
        input_current[1 + t] = scale
        scope = {**constants, **states, model.inputs[0]: input_current}
        scope.update(dict.fromkeys(model.inputs[1:], _constant(np.zeros(()), neurons)))
        arguments: dict[str, tuple[str, Form]] = {}
        for line in model.equations:
            if fired := _spike_of(line.value):
                arguments[line.target] = (fired[0], _evaluate(fired[1], scope, oracle))
                scope[line.target] = _constant(oracle(*arguments[line.target]), neurons)
            else:
                scope[line.target] = _evaluate(line.value, scope, oracle)
        states = {s: scope[s] for s in model.states}
        if spikes:
            kind, argument = arguments[spikes[-1]]  # the last spike of the equations that is not detached is the output
            response.kinds.append(kind)
            response.membranes.append(argument)
        for output in (o for o in model.outputs if o not in arguments):
            response.values.setdefault(output, []).append(scope[output])
    return response


def _spike_of(e: Expression) -> tuple[str, Expression] | None:
    """Return the spike function that an expression calls, detached or not, and its argument; None for any other expression."""
    match e:
        case Call("detach", (inner,)):
            return _spike_of(inner)
        case Call("spike" | "spike_ge" as kind, (inner,)):
            return kind, inner
    return None


def _constant(value: Array, neurons: int) -> Form:
    form = np.zeros((1 + _STEPS, neurons))
    form[0] = value
    return form


def _evaluate(e: Expression, scope: Mapping[str, Form], oracle: Oracle) -> Form:
    neurons = next(iter(scope.values())).shape[1]
    match e:
        case Number(value):
            return _constant(np.asarray(value), neurons)
        case Symbol(name):
            return scope[name]
        case Call("detach", (inner,)):
            return _evaluate(inner, scope, oracle)
        case Call("spike" | "spike_ge" as kind, (inner,)):
            return _constant(oracle(kind, _evaluate(inner, scope, oracle)), neurons)
        case Call(function, args):
            return _apply(function, [_evaluate(a, scope, oracle) for a in args], neurons)
    raise NotLinearError


def _apply(function: str, args: list[Form], neurons: int) -> Form:
    a, b = args[0], args[-1]
    match function:
        case "add" | "sub" | "neg":
            return apply(function, *args)
        case "mul" if not a[1:].any():
            return np.asarray(np.multiply(a[0], b))
        case "mul" if not b[1:].any():
            return np.asarray(np.multiply(a, b[0]))
        case "div" if not b[1:].any() and b[0].all():
            return np.asarray(np.divide(a, b[0]))
    if function not in _OF_CONSTANTS or any(x[1:].any() for x in args):
        raise NotLinearError
    return _constant(apply(function, *(x[0] for x in args)), neurons)
