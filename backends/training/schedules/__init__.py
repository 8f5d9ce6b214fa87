"""Schedules of values that change during training: learning rates, gradient windows and spike capacities."""

from __future__ import annotations

from snnc.backends.training.schedules.base import Schedule, ScheduleError, TrainingPosition, value_at
from snnc.backends.training.schedules.combined import ByEpoch, WarmUp
from snnc.backends.training.schedules.curves import ConstantSchedule, Cosine, Exponential, LinearSchedule, OneCycle, StepSchedule
from snnc.backends.training.schedules.plateau import Plateau
from snnc.backends.training.schedules.text import FUNCTION, Scheduled, parse_schedule, schedule_text, value_text

__all__ = [
    "FUNCTION",
    "ByEpoch",
    "ConstantSchedule",
    "Cosine",
    "Exponential",
    "LinearSchedule",
    "OneCycle",
    "Plateau",
    "Schedule",
    "ScheduleError",
    "Scheduled",
    "StepSchedule",
    "TrainingPosition",
    "WarmUp",
    "parse_schedule",
    "schedule_text",
    "value_at",
    "value_text",
]
