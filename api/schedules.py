"""Numbers that change while a network trains: ``learning_rate=snnc.schedules.Cosine(0.1, epochs=20)``.

Each schedule is a function of the update; ``session.fit(learning_rate=…)`` takes them, other functions of the update, numbers, and the text
of one, ``"cosine:0.1,epochs=20"``.
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
    "ByEpoch",
    "Constant",
    "Cosine",
    "Exponential",
    "Linear",
    "OneCycle",
    "Plateau",
    "Schedule",
    "ScheduleError",
    "Steps",
    "WarmUp",
    "parse_schedule",
    "schedule_text",
]
