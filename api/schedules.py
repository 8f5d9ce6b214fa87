"""Schedules of numbers during training: ``learning_rate=snnc.schedules.Cosine(0.1, epochs=20)``.

A schedule computes the value for an update from the number of the update, and :class:`Plateau` from the validation losses of all epochs so
far. ``session.fit(learning_rate=…)`` accepts schedules, other functions of the number of the update, constant numbers, and the text of a
schedule, such as ``"cosine:0.1,epochs=20"``.
"""

from __future__ import annotations

from snnc.backends.training.schedules import (
    ByEpoch,
    Cosine,
    Exponential,
    OneCycle,
    Plateau,
    Schedule,
    ScheduleError,
    WarmUp,
    parse_schedule,
    schedule_text,
)
from snnc.backends.training.schedules import ConstantSchedule as Constant
from snnc.backends.training.schedules import LinearSchedule as Linear
from snnc.backends.training.schedules import StepSchedule as Steps

__all__ = [
    "ByEpoch", "Constant", "Cosine", "Exponential", "Linear", "OneCycle", "Plateau", "Schedule", "ScheduleError", "Steps", "WarmUp",
    "parse_schedule", "schedule_text",
]  # fmt: skip
