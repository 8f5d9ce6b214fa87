"""Neurons that receive gradient: those in the support of the surrogate, where its derivative is not zero.

The gradient that connections send back to an output ``o = spike(x)`` is multiplied by the surrogate at x and used nowhere else.
If the surrogate has bounded support, the gradient is therefore needed only there.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.neurons.expression import Assignment, Call, Symbol
from snnc.compiler.neurons.kernel import Kernel

_SPIKES: Final = ("spike", "spike_ge")
NO_BOUND: Final = -100.0
"""Lower end of a window that excludes no membrane; the published code starts training with it."""
_ROUNDING: Final = 4e-7
"""Relative slack of the bounds, some rounding errors of float32: one neuron too many is harmless, one too few is not."""


def support_bounds(population: PopulationInfo, output: str) -> tuple[float, float] | None:
    """Return bounds of x between which the canonical output `output` of a population receives gradient; None: for every x.

    None also if the output is not a ``spike(x)``, or if the bounds exclude no neuron, as with a window from :data:`NO_BOUND` or below.
    """
    found = population.surrogate.support
    if found is None or (found[0] <= NO_BOUND and found[1] == math.inf) or _spike_of(population.kernel, output) is None:
        return None
    return _widened(found[0], -1), _widened(found[1], 1)


def _widened(bound: float, direction: int) -> float:
    return bound + direction * _ROUNDING * abs(bound) if math.isfinite(bound) else bound


def argument_name(output: str) -> str:
    """Return the name of x in the code that :func:`with_arguments` returns."""
    return f"x_{output}"


def with_arguments(kernel: Kernel, outputs: Collection[str]) -> tuple[Assignment, ...]:
    """Return the forward code of `kernel` with the argument x of the spike of each of `outputs` under a separate name."""
    code = list(kernel.forward)
    for output in sorted(outputs):
        place = _spike_of(kernel, output)
        if place is None:
            raise ValueError(f"{output} is not a spike")
        index = next(i for i, a in enumerate(code) if a.target == place.target)
        spike = code[index].value
        assert isinstance(spike, Call)
        named = Symbol(argument_name(output))
        code[index : index + 1] = [Assignment(named.name, spike.args[0]), Assignment(place.target, Call(spike.function, (named,)))]
    return tuple(code)


def _spike_of(kernel: Kernel, output: str) -> Assignment | None:
    """Return the assignment ``y = spike(x)`` whose value `output` is; None if there is none."""
    values = {a.target: a for a in kernel.forward}
    found = values.get(output)
    while found is not None and isinstance(found.value, Symbol):
        found = values.get(found.value.name)
    if found is None or not isinstance(found.value, Call) or found.value.function not in _SPIKES:
        return None
    return found
