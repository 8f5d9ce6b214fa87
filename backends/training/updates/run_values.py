"""Run-time values that change during training, other than weights: the gradient window and the spike capacity."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.backends.runtime.engine import Engine
from snnc.backends.runtime.errors import GradientWindowError
from snnc.backends.training.schedules import Scheduled, TrainingPosition, parse_schedule, value_at, value_text
from snnc.backends.training.updates.capacities import CapacityPlan, ScheduledCapacity, SpikeLimits
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.window_values import window_parameters

WindowArgument: TypeAlias = Scheduled | tuple[Scheduled, Scheduled] | None
"""The lower end of a gradient window, or both ends (as text ``"LOW to HIGH"``); None: unchanged."""

_TO: Final = " to "


class GradientWindow:
    """The gradient window of a loaded engine, inside the compiled one."""

    def __init__(self, program: StepProgram, engine: Engine) -> None:
        self._engine = engine
        self._parameters = window_parameters(program)
        self.now = None if self._parameters is None else self._parameters.widest
        """Current ends of the window; None if the program was compiled without one."""

    def set(self, low: float, high: float | None = None) -> None:
        """Set the ends, as membrane potential minus threshold; `high`: None for the upper end of the compiled window.

        Raises a GradientWindowError if the program has no window, or the new one is not numeric, empty, or outside the compiled window.
        """
        parameters = self._parameters
        if parameters is None:
            raise GradientWindowError(
                "the network was compiled without a gradient window, so its gradient reaches all neurons; compile with "
                "gradient_window=LOW, the lowest end that training needs (-100 excludes no neuron)."
            )
        ends = low, parameters.widest[1] if high is None else high
        self._check(ends, parameters.widest)
        if ends == self.now:
            return
        values = dict.fromkeys(parameters.low, ends[0]) | dict.fromkeys(parameters.high, ends[1])
        self._engine.set_parameters({name: np.array(value, dtype=np.float32) for name, value in values.items()})
        self.now = ends

    @staticmethod
    def _check(ends: tuple[float, float], widest: tuple[float, float]) -> None:
        numbers: tuple[Any, Any] = ends
        are_real = all(isinstance(end, Real) and not isinstance(end, bool) for end in numbers)
        if not (are_real and math.isfinite(ends[0]) and ends[0] < ends[1]):
            raise GradientWindowError(f"the gradient window {ends!r} is empty or not two numbers; give low < high, with a finite low.")
        low, high = widest
        # A schedule that begins at the compiled end may differ from it by float32 rounding.
        if ends[0] < low - 1e-6 * abs(low) or (ends[1] != high and (high == math.inf or ends[1] > high + 1e-6 * abs(high))):
            wider = "has no upper end to change" if high == math.inf and ends[0] >= low else "is narrower"
            raise GradientWindowError(
                f"the gradient window ({ends[0]:g}, {ends[1]:g}) is not inside the compiled one, ({low:g}, {high:g}), which {wider}; "
                "compile with the widest window that training needs, gradient_window=LOW or (LOW, HIGH)."
            )


class RunValues:
    """The scheduled values of a training run, set before each update.

    `window` and `limits` are the gradient window and the spike limits of the session; `gradient_window` and `capacity` are the values or
    schedules given to ``fit``, None for no change. Raises a GradientWindowError, SpikeLimitError, CapacityTextError or ScheduleError if a
    value is invalid, or the program does not have it.
    """

    def __init__(
        self,
        window: GradientWindow,
        gradient_window: WindowArgument = None,
        limits: SpikeLimits | None = None,
        capacity: ScheduledCapacity | None = None,
    ) -> None:
        self._window = window
        self._limits = limits
        self._capacity = None if capacity is None else CapacityPlan.of(capacity)
        if capacity is not None and limits is not None and limits.capacity is None:
            limits.set(1)  # raises the error
        ends = [] if gradient_window is None else window_ends(gradient_window)
        self._ends = [parse_schedule(end) if isinstance(end, str) else end for end in ends]
        if len(self._ends) > 2 or any(end is None or isinstance(end, bool) for end in self._ends):
            raise GradientWindowError(f"gradient_window is {gradient_window!r}; give its lower end or both ends, numbers or schedules.")
        if self._ends and window.now is None:
            window.set(0.0)  # raises the error

    @property
    def capacity_text(self) -> str:
        """The capacity for a checkpoint, like :attr:`window_text`."""
        return "" if self._capacity is None else self._capacity.text

    @property
    def window_text(self) -> str:
        """The gradient window for a checkpoint: numbers, schedules as text, functions as the word "function"; empty if not given."""
        return _TO.join(value_text(end) for end in self._ends)

    def set_for(self, when: TrainingPosition) -> None:
        """Set the values for the update that follows `when`."""
        if self._ends:
            ends: list[Any] = [value_at(end, when) if callable(end) else end for end in self._ends]
            self._window.set(*ends)
        if self._limits is not None and self._limits.capacity is not None:
            self._limits.set(None if self._capacity is None else self._capacity.at(when), update=when.update)


def window_ends(window: Any) -> list[Any]:
    """Return the ends that the argument `window` sets: the lower one, or both."""
    if isinstance(window, str):
        return [end.strip() for end in window.split(_TO)]
    return list(window) if isinstance(window, tuple | list) else [window]
