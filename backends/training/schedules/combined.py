"""Schedules that modify another schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snnc.backends.training.schedules.base import Lasting, Schedule, ScheduleError, TrainingPosition, check_numbers, later, value_at
from snnc.backends.training.schedules.curves import ConstantSchedule, interpolated


@dataclass(frozen=True)
class WarmUp(Lasting):
    """A linear increase to the first value of another schedule, followed by that schedule.

    The values equal those of torch.optim.lr_scheduler.SequentialLR with a LinearLR and the other scheduler.

    Attributes
    ----------
    then
        The other schedule, any function of the number of updates, or a number. Its update 0 is the first one after the increase.
    updates, epochs
        Length of the increase; give one of them.
    factor
        Value at update 0, relative to the first value of `then` (``start_factor`` in LinearLR, where it must be above 0).
    """

    then: Callable[[int], float] | float
    factor: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "factor")
        _schedule(self.then)

    def at(self, when: TrainingPosition) -> float:
        then = _schedule(self.then)
        length = self.length(when)
        if when.update >= length:
            return float(value_at(then, later(when, length)))
        goal = float(value_at(then, TrainingPosition(0, 0, when.batches, () if when.losses is not None else None)))
        return interpolated(self.factor * goal, goal, when.update / length)


@dataclass(frozen=True)
class ByEpoch(Schedule):
    """A schedule that counts epochs instead of updates.

    Attributes
    ----------
    then
        A schedule, or a function of the epoch number, from 0.
    """

    then: Callable[[int], float]

    def __post_init__(self) -> None:
        if not callable(self.then):
            raise ScheduleError(f"ByEpoch got {self.then!r}; give a schedule, or a function of the epoch.")

    def at(self, when: TrainingPosition) -> float:
        if when.epoch is None:
            raise ScheduleError("ByEpoch has a value for each epoch, but the epoch is unknown here; give a function of the update.")
        return float(value_at(self.then, TrainingPosition(when.epoch, when.epoch, 1, when.losses)))


def _schedule(then: Callable[[int], float] | float) -> Callable[[int], float]:
    return then if callable(then) else ConstantSchedule(then)
