"""The division of a training run into epochs and batches, and the learning rate of each update."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

from snnc.backends.runtime.engine import Engine
from snnc.backends.runtime.errors import BatchSizeError, TrainingOptionError
from snnc.backends.training.schedules import TrainingPosition, parse_schedule, schedule_text, value_at
from snnc.compiler.losses.optimizers import Optimizer

LearningRate: TypeAlias = float | str | Callable[[int], float] | None
"""A number, a schedule, another function of the number of updates, or the text of a schedule; None: the optimiser's value."""


@dataclass(frozen=True)
class BatchSchedule:
    """The division of samples into batches."""

    epochs: int
    first_epoch: int = 0
    """Number of earlier epochs; their sample orders are drawn and skipped."""
    shuffle: bool = False
    seed: int = 0
    accumulate: int = 1
    """Number of parts into which the samples of an update are split."""
    batch: int = 0
    """Number of samples per update; 0 for a stream, which determines its batches itself."""
    full_batches_only: bool = False
    """Whether an epoch skips samples that do not fill a batch."""

    def __post_init__(self) -> None:
        check_count("first_epoch", self.first_epoch, 0)
        check_count("epochs", self.epochs, 1)
        check_count("accumulate", self.accumulate, 1)

    def used(self, count: int) -> int:
        """Return the number of samples that an epoch trains on, if there are `count` samples."""
        return count - count % self.batch if self.full_batches_only else count

    def parts(self, count: int) -> list[slice]:
        """Return the batches, one per update, as slices of the order of `count` samples; `accumulate` does not split them here."""
        used = self.used(count)
        return [slice(at, min(at + self.batch, used)) for at in range(0, used, self.batch)]


def batch_size(engine: Engine, count: int, wanted: int | None, accumulate: int) -> int:
    """Return the number of samples per update, if there are `count` samples and the caller asked for `wanted` of them.

    An engine that accepts any batch size gets `wanted` samples, or 64 by default, but at most `count`. An engine compiled for one batch
    size runs `accumulate` batches in each update. For such an engine, raises a BatchSizeError if `wanted` is another number of samples, or
    `count` samples do not fill one update.
    """
    if wanted is not None:
        check_count("batch", wanted, 1)
    if engine.batch is None:
        return min(count, wanted or 64)
    size = engine.batch * accumulate
    if wanted not in (None, size):
        several = "" if accumulate == 1 else f", so an update of {accumulate} batches has {size} samples"
        compiled = f"the network was compiled for {engine.batch}{several}"
        raise BatchSizeError(f"batch is {wanted}, but {compiled}; omit it, or compile again.")
    if count < size:
        what = f"one batch of {size}" if accumulate == 1 else f"{accumulate} batches of {engine.batch}"
        raise BatchSizeError(f"{count} samples do not fill {what}; give more samples, or compile for a smaller batch.")
    return size


def learning_rate(optimizer: Optimizer, wanted: LearningRate) -> Callable[[TrainingPosition], float]:
    """Return a function that computes the learning rate of each update.

    The function raises a TrainingOptionError for a rate that is not a number of 0 or more. A text that does not describe a schedule raises
    a ScheduleError.
    """
    schedule = parse_schedule(wanted) if isinstance(wanted, str) else wanted

    def rate_of(when: TrainingPosition) -> float:
        rate: Any = value_at(schedule, when) if callable(schedule) else optimizer.lr if schedule is None else schedule
        value = float(rate) if not isinstance(rate, bool) and isinstance(rate, Real) else math.nan
        if not (math.isfinite(value) and value >= 0):
            where = "" if when.epoch is None else f", in epoch {when.epoch + 1}"
            raise TrainingOptionError(f"the learning rate of update {when.update}{where} is {rate!r}; it must be a number of 0 or more.")
        return value

    return rate_of


def rate_in_words(wanted: LearningRate) -> float | str | None:
    """Return a learning rate for a checkpoint: a number, the text of a schedule, or None for functions and the optimiser's value."""
    schedule = parse_schedule(wanted) if isinstance(wanted, str) else wanted
    if schedule is None or callable(schedule):
        return None if schedule is None else schedule_text(schedule)
    return float(schedule)


def check_count(name: str, value: object, least: int) -> None:
    """Raise a TrainingOptionError unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise TrainingOptionError(f"{name} is {value!r}; it must be a whole number of {least} or more.")
