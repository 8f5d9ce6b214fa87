"""Base class of schedules: a value for each update of a training run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real

from snnc.backends.runtime.errors import SessionError


class ScheduleError(SessionError, code="SNNC-E590"):
    """A schedule has an unknown form or invalid arguments, or needs validation data or a batch count that is not available."""


@dataclass(frozen=True)
class TrainingPosition:
    """The position of a training run before one of its updates."""

    update: int  # number of updates so far, including those of earlier epochs
    epoch: int | None = None  # number of epochs so far; None: unknown
    batches: int | None = None  # number of updates per epoch; None: unknown
    losses: Sequence[float] | None = None  # validation loss of each epoch so far; None: no validation


class Schedule(ABC):
    """A value for each update; it can also be called as a function: ``schedule(update)``.

    A schedule that counts in epochs, and a :class:`Plateau`, have values only in a training run, where the epoch, the number of updates
    per epoch and the validation losses are known.
    """

    @abstractmethod
    def at(self, when: TrainingPosition) -> float:
        """Return the value for the update that follows `when`.

        Raises
        ------
        ScheduleError
            The value depends on a field that `when` does not have.
        """

    def __call__(self, update: int) -> float:
        """Return the value for the update with this number, from 0."""
        return self.at(TrainingPosition(update))


@dataclass(frozen=True, kw_only=True)
class Lasting(Schedule):
    """A schedule of finite length.

    Attributes
    ----------
    updates, epochs
        The length, in one of these units; a training run converts epochs to updates.
    """

    updates: int | None = None
    epochs: float | None = None

    def __post_init__(self) -> None:
        if (self.updates is None) == (self.epochs is None):
            raise ScheduleError(f"{type(self).__name__} needs a length: give either updates=… or epochs=….")
        if self.updates is not None:
            check_whole_numbers(self, "updates", least=1)
        if self.epochs is not None and (not is_number(self.epochs) or self.epochs <= 0):
            raise ScheduleError(f"epochs of {type(self).__name__} is {self.epochs!r}; it must be a number above 0.")

    def length(self, when: TrainingPosition) -> int:
        """Return the length in updates."""
        if self.updates is not None:
            return self.updates
        assert self.epochs is not None, "checked by __post_init__"
        return updates_of(self.epochs, when, self)


def updates_of(epochs: float, when: TrainingPosition, schedule: Schedule) -> int:
    """Convert epochs to updates, at least one; raise a ScheduleError if the number of updates per epoch is unknown."""
    if when.batches is None:
        raise ScheduleError(
            f"{type(schedule).__name__} lasts {epochs:g} epochs, but the number of updates per epoch is unknown here; give updates=…."
        )
    return max(1, round(epochs * when.batches))


def is_number(value: object) -> bool:
    """Return whether `value` is a finite real number."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def check_numbers(schedule: Schedule, *names: str, least: float = -math.inf) -> None:
    """Raise a ScheduleError, which names the field, for fields that are not finite numbers of at least `least`."""
    for name in names:
        value = getattr(schedule, name)
        if not is_number(value) or value < least:
            bound = "" if least == -math.inf else f" of {least:g} or more"
            raise ScheduleError(f"{name} of {type(schedule).__name__} is {value!r}; it must be a number{bound}.")


def check_whole_numbers(schedule: Schedule, *names: str, least: int) -> None:
    """Raise a ScheduleError, which names the field, for fields that are not integers of at least `least`."""
    for name in names:
        value = getattr(schedule, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ScheduleError(f"{name} of {type(schedule).__name__} is {value!r}; it must be a whole number of {least} or more.")


def value_at(schedule: Callable[[int], float], when: TrainingPosition) -> float:
    """Return the value of a schedule, or of any function of the number of updates."""
    return schedule.at(when) if isinstance(schedule, Schedule) else schedule(when.update)


def later(when: TrainingPosition, updates: int) -> TrainingPosition:
    """Return the position `when`, with updates and epochs counted from update number `updates` on."""
    epoch = None if when.epoch is None or not when.batches else (when.update - updates) // when.batches
    return replace(when, update=when.update - updates, epoch=epoch)
