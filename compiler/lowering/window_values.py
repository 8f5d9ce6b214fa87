"""Bounds of a gradient window as run-time values: kernel parameters that are neither trained nor saved with the weights.

The compiled window is the widest one: plans for tile machines use it as the support of the surrogate
(:mod:`snnc.compiler.lowering.gradient_support`), and a run may narrow it at any time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.spike_limits import is_limit_value
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

_LOW: Final = "window_low"
_HIGH: Final = "window_high"


def with_window_values(
    model: NeuronModel, surrogate: Surrogate, window: tuple[float, float]
) -> tuple[NeuronModel, Surrogate, dict[str, str]]:
    """Return `model` with the bounds of `window` as additional parameters, and `surrogate`, which reads them.

    An infinite upper bound gets no parameter. The last result is the end of each added parameter's name in a program, by its name in the
    model.
    """
    taken = {*model.inputs, *model.states, *model.parameters, *(a.target for a in model.equations), "x"}
    low, high = _free(_LOW, taken), _free(_HIGH, taken)
    ends = {low: window[0]} | ({high: window[1]} if window[1] < math.inf else {})
    windowed = surrogate.windowed_by(low, high if high in ends else None)
    extended = replace(model, parameters={**model.parameters, **ends})
    return extended, windowed, {name: _LOW if name == low else _HIGH for name in ends}


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


@dataclass(frozen=True)
class WindowParameters:
    """Parameters of a program that contain the bounds of gradient windows."""

    # Names of the lower and upper bounds.
    low: tuple[str, ...]
    high: tuple[str, ...]
    widest: tuple[float, float]  # the compiled window, which is the widest one; its upper bound is infinite if `high` is empty


def window_parameters(program: StepProgram) -> WindowParameters | None:
    """Return the parameters of `program` that contain the bounds of its gradient windows; None without gradient windows."""
    low, high = ([name for name in program.parameters if name.endswith(f"_{end}")] for end in (_LOW, _HIGH))
    if not low:
        return None
    compiled = next(p.surrogate.parameters for p in program.populations if low[0].startswith(f"{p.id}_"))
    widest = (compiled["low"], compiled["high"] if high else math.inf)
    return WindowParameters(tuple(low), tuple(high), widest)


def is_run_value(name: str) -> bool:
    """Return whether a parameter, given by its name in the program, is a run-time value of a window or spike limit and not a weight."""
    return is_window_value(name) or is_limit_value(name)


def is_window_value(name: str) -> bool:
    """Return whether a parameter, given by its name in the program, is a bound of a gradient window."""
    return name.endswith((f"_{_LOW}", f"_{_HIGH}"))
