"""Schedules with a closed formula in the number of updates, so training can resume at any update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from snnc.backends.training.schedules.base import Lasting, Schedule, ScheduleError, TrainingPosition, check_numbers, is_number, updates_of


@dataclass(frozen=True)
class ConstantSchedule(Schedule):
    """The same value at every update."""

    value: float

    def __post_init__(self) -> None:
        check_numbers(self, "value")

    def at(self, when: TrainingPosition) -> float:
        return float(self.value)


@dataclass(frozen=True)
class LinearSchedule(Lasting):
    """Linear from `first` to `last`, then constant, like torch.optim.lr_scheduler.LinearLR.

    Attributes
    ----------
    first, last
        Value at update 0, and value from update `updates` on.
    updates, epochs
        The length; give one of them.

    Examples
    --------
    >>> from snnc.schedules import Linear
    >>> [Linear(1.0, 0.0, updates=4)(update) for update in range(6)]
    [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    first: float
    last: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "first", "last")

    def at(self, when: TrainingPosition) -> float:
        return interpolated(self.first, self.last, min(when.update / self.length(when), 1.0))


@dataclass(frozen=True)
class Cosine(Lasting):
    """Half a cosine from `first` to `last`, like torch.optim.lr_scheduler.CosineAnnealingLR.

    Attributes
    ----------
    first, last
        Value at update 0, and value at update `updates` (``T_max`` and ``eta_min`` in PyTorch).
    updates, epochs
        The length; give one of them.
    rises
        Whether the values rise again after `last`, as they do in PyTorch; otherwise they stay at `last`.
    """

    first: float
    last: float = 0.0
    rises: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "first", "last")

    def at(self, when: TrainingPosition) -> float:
        part = when.update / self.length(when)
        return cosine(self.first, self.last, part if self.rises else min(part, 1.0))


@dataclass(frozen=True)
class OneCycle(Lasting):
    """Up to `highest` and down again, like torch.optim.lr_scheduler.OneCycleLR without momentum (Smith & Topin, arXiv 1708.07120).

    Attributes
    ----------
    highest
        The largest value (``max_lr`` in PyTorch).
    updates, epochs
        The length (``total_steps`` in PyTorch); give one of them. After it, the value is constant.
    pct_start
        Fraction of the length during which the values rise.
    div_factor, final_div_factor
        The first value is ``highest / div_factor``; the last value is the first one divided by `final_div_factor`.
    anneal
        Shape of the increase and of the decrease: ``"cosine"`` or ``"linear"``.
    """

    highest: float
    pct_start: float = 0.3
    div_factor: float = 25.0
    final_div_factor: float = 1e4
    anneal: Literal["cosine", "linear"] = "cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, "highest")
        check_numbers(self, "pct_start", least=0)
        if self.pct_start > 1:
            raise ScheduleError(f"pct_start of OneCycle is {self.pct_start!r}; it must be between 0 and 1.")
        for name in ("div_factor", "final_div_factor"):
            if not is_number(getattr(self, name)) or getattr(self, name) <= 0:
                raise ScheduleError(f"{name} of OneCycle is {getattr(self, name)!r}; it must be a number above 0.")
        if self.anneal not in ("cosine", "linear"):
            raise ScheduleError(f"anneal of OneCycle is {self.anneal!r}; it must be 'cosine' or 'linear'.")

    def at(self, when: TrainingPosition) -> float:
        total, curve = self.length(when), cosine if self.anneal == "cosine" else interpolated
        first = self.highest / self.div_factor
        top, end = self.pct_start * total - 1, total - 1
        update = min(when.update, end)
        if update <= top:
            return curve(first, self.highest, update / top if top > 0 else 1.0)
        return curve(self.highest, first / self.final_div_factor, (update - top) / (end - top))


@dataclass(frozen=True)
class Exponential(Schedule):
    """From `first` towards `last`: each update multiplies the distance to `last` by `factor`; the default, 1/2, halves it.

    Finkbeiner et al. (2023) change the lower end of the gradient window in this way, from 100 to 0.1 below the threshold. With `last` = 0,
    the schedule equals torch.optim.lr_scheduler.ExponentialLR.

    Attributes
    ----------
    first, last
        Value at update 0, and limit.
    factor
        Fraction of the distance to `last` that remains after an update (``gamma`` in PyTorch), at least 0 and below 1.

    Examples
    --------
    >>> [Exponential(-8.0)(update) for update in range(4)]
    [-8.0, -4.0, -2.0, -1.0]
    """

    first: float
    last: float = 0.0
    factor: float = 0.5

    def __post_init__(self) -> None:
        check_numbers(self, "first", "last")
        check_numbers(self, "factor", least=0)
        if self.factor >= 1:
            raise ScheduleError(f"factor of Exponential is {self.factor!r}; it must be at least 0 and below 1.")

    def at(self, when: TrainingPosition) -> float:
        return float(self.last + (self.first - self.last) * self.factor**when.update)


@dataclass(frozen=True)
class StepSchedule(Schedule):
    """A value that changes at given updates or epochs, like torch.optim.lr_scheduler.MultiStepLR.

    Attributes
    ----------
    first
        The value before the first change.
    factor
        Factor by which each change multiplies the value (``gamma`` in PyTorch); 0.1 if neither `factor` nor `values` is given.
    values
        The value after each change, instead of `factor`.
    updates, epochs
        Numbers of the updates, or of the epochs, at which the value changes, ascending (``milestones`` in PyTorch); give one of them.
    """

    first: float
    factor: float | None = None
    values: Sequence[float] | None = None
    updates: Sequence[int] | None = None
    epochs: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check_numbers(self, "first")
        if (self.updates is None) == (self.epochs is None):
            raise ScheduleError("Steps needs the positions of its steps: give either updates=[…] or epochs=[…].")
        name, places = ("updates", self.updates) if self.epochs is None else ("epochs", self.epochs)
        if not _is_list(places) or not places or not all(is_number(n) and n > 0 for n in places):
            raise ScheduleError(f"{name} of Steps is {places!r}; it must be a list of numbers above 0.")
        if any(after <= before for before, after in pairwise(places)):
            raise ScheduleError(f"{name} of Steps is {places!r}; the numbers must ascend.")
        object.__setattr__(self, name, tuple(places))
        self._check_values(len(places))

    def _check_values(self, count: int) -> None:
        if self.values is None:
            if self.factor is None:
                object.__setattr__(self, "factor", 0.1)
            check_numbers(self, "factor")
            return
        if self.factor is not None:
            raise ScheduleError("Steps has both factor and values; omit one of them.")
        if not _is_list(self.values) or len(self.values) != count or not all(map(is_number, self.values)):
            raise ScheduleError(f"values of Steps is {self.values!r}; it must be a list of {count} numbers, one per step.")
        object.__setattr__(self, "values", tuple(self.values))

    def at(self, when: TrainingPosition) -> float:
        places = self.updates if self.updates is not None else [updates_of(epoch, when, self) for epoch in self.epochs or ()]
        passed = sum(when.update >= place for place in places)
        if self.values is not None:
            return float(self.values[passed - 1] if passed else self.first)
        assert self.factor is not None, "set by __post_init__"
        return float(self.first * self.factor**passed)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def interpolated(first: float, last: float, part: float) -> float:
    """Return the value on the line from `first` (part 0) to `last` (part 1); both ends are exact."""
    return float(last if part == 1 else first + (last - first) * part)


def cosine(first: float, last: float, part: float) -> float:
    """Return the value on the half cosine from `first` (part 0) to `last` (part 1)."""
    return float(last + (first - last) * (1 + math.cos(math.pi * part)) / 2)
