"""Neurons that receive a gradient: those in the support of the surrogate, where its value is not 0.

The gradient that connections send back to an output ``o = spike(x)`` is multiplied by the surrogate at x and not used otherwise.
If the surrogate has bounded support, the gradient is therefore needed only in the support.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.neurons.expression import SPIKES, Assignment, Call, Symbol
from snnc.compiler.neurons.kernel import Kernel

NO_BOUND: Final = -100.0
"""A window with this lower bound, or a lower one, counts as excluding no neuron at its lower end."""
_ROUNDING: Final = 4e-7
"""Relative slack of the bounds, a few rounding errors of float32: an extra neuron is harmless, a missing one is not."""


def support_bounds(population: PopulationInfo, output: str) -> tuple[float, float] | None:
    """Return the bounds of x between which `output` of a population (such as ``o0``) receives a gradient; None: every x.

    The result is also None if the output is not a ``spike(x)``, or if the bounds exclude no neuron (lower bound :data:`NO_BOUND` or less).
    """
    bounds = population.surrogate.support
    if bounds is None or (bounds[0] <= NO_BOUND and bounds[1] == math.inf) or _spike_of(population.kernel, output) is None:
        return None
    return _widened(bounds[0], -1), _widened(bounds[1], 1)


def _widened(bound: float, direction: int) -> float:
    return bound + direction * _ROUNDING * abs(bound) if math.isfinite(bound) else bound


def argument_name(output: str) -> str:
    """Return the name of the argument of the spike of `output` in the code from :func:`with_arguments`."""
    return f"x_{output}"


def with_arguments(kernel: Kernel, outputs: Collection[str]) -> tuple[Assignment, ...]:
    """Return the forward code of `kernel`, in which the argument of the spike of each of `outputs` is assigned to :func:`argument_name`."""
    code = list(kernel.forward)
    for output in sorted(outputs):
        assignment = _spike_of(kernel, output)
        if assignment is None:
            raise ValueError(f"{output} is not a spike")
        index = next(i for i, a in enumerate(code) if a.target == assignment.target)
        spike = code[index].value
        assert isinstance(spike, Call)
        named = Symbol(argument_name(output))
        code[index : index + 1] = [Assignment(named.name, spike.args[0]), Assignment(assignment.target, Call(spike.function, (named,)))]
    return tuple(code)


def _spike_of(kernel: Kernel, output: str) -> Assignment | None:
    """Return the assignment ``y = spike(x)`` that defines `output`; None if `output` is not a spike."""
    values = {a.target: a for a in kernel.forward}
    assignment = values.get(output)
    while assignment is not None and isinstance(assignment.value, Symbol):
        assignment = values.get(assignment.value.name)
    if assignment is None or not isinstance(assignment.value, Call) or assignment.value.function not in SPIKES:
        return None
    return assignment
