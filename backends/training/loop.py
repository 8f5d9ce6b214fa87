"""The loop over epochs and batches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias

import numpy as np

from snnc.backends.runtime.engine import Array, Engine
from snnc.backends.runtime.errors import BatchSizeError, TrainingOptionError
from snnc.backends.runtime.history import Epoch, History
from snnc.backends.training.checkpoint import Position
from snnc.backends.training.schedules import Moment, parse_schedule, schedule_text, value_at
from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.losses.optimizers import Optimizer

LearningRate: TypeAlias = float | str | Callable[[int], float] | None
"""A number, a schedule or other function of the update, or the text of a schedule; None: the optimizer's."""


@dataclass(frozen=True)
class BatchSchedule:
    """The division of samples into batches."""

    epochs: int
    batch: int
    full_batches_only: bool
    shuffle: bool
    seed: int
    first_epoch: int = 0
    """Earlier epochs, whose orders are drawn and skipped."""

    def __post_init__(self) -> None:
        check_epochs(self.epochs, self.first_epoch)
        check_count("seed", self.seed, 0)


def check_epochs(epochs: int, first_epoch: int) -> None:
    """Refuse invalid numbers of epochs.

    Raises
    ------
    TrainingOptionError
        They are not whole numbers, or too small.
    """
    check_count("first_epoch", first_epoch, 0)
    check_count("epochs", epochs, 1)


def batch_size(engine: Engine, count: int, wanted: int | None, accumulate: int = 1) -> int:
    """Return the samples of one update; an engine of one batch size makes it from `accumulate` batches.

    Raises
    ------
    BatchSizeError
        The engine needs another number, or there are fewer samples.
    """
    if wanted is not None:
        check_count("batch", wanted, 1)
    if engine.batch is None:
        return min(count, wanted or 64)
    size = update_size(engine.batch, accumulate)
    if wanted not in (None, size):
        several = "" if accumulate == 1 else f", so an update of {accumulate} batches has {size} samples"
        compiled = f"the network was compiled for {engine.batch}{several}"
        raise BatchSizeError(f"batch is {wanted}, but {compiled}; leave it out, or compile again.")
    if count < size:
        what = f"one batch of {size}" if accumulate == 1 else f"{accumulate} batches of {engine.batch}"
        raise BatchSizeError(f"{count} samples do not fill {what}; give more, or compile for a smaller batch.")
    return size


def update_size(batch: int, accumulate: int) -> int:
    """Return the samples of an update from `accumulate` batches."""
    check_count("accumulate", accumulate, 1)
    return batch * accumulate


def learning_rate(optimizer: Optimizer, wanted: LearningRate) -> Callable[[Moment], float]:
    """Return the learning rate of each update.

    Raises
    ------
    ScheduleError
        A text describes no schedule.
    """
    schedule = parse_schedule(wanted) if isinstance(wanted, str) else wanted

    def rate(when: Moment) -> float:
        given: Any = value_at(schedule, when) if callable(schedule) else optimizer.lr if schedule is None else schedule
        value = float(given) if not isinstance(given, bool) and isinstance(given, Real) else math.nan
        if not (math.isfinite(value) and value >= 0):
            where = "" if when.epoch is None else f", in epoch {when.epoch}"
            raise TrainingOptionError(f"the learning rate of update {when.update}{where} is {given!r}; it must be a number of 0 or more.")
        return value

    return rate


def rate_in_words(wanted: LearningRate) -> float | str | None:
    """Return a learning rate as a checkpoint names it: a number, the text of a schedule, or None for functions and the optimizer's."""
    schedule = parse_schedule(wanted) if isinstance(wanted, str) else wanted
    if schedule is None or callable(schedule):
        return None if schedule is None else schedule_text(schedule)
    return float(schedule)


def batches_of(plan: BatchSchedule, count: int) -> int:
    """Return how many batches an epoch of `count` samples has."""
    return count // plan.batch if plan.full_batches_only else -(-count // plan.batch)


class Watch(Protocol):
    """Observer of a training."""

    def after_batch(self, epoch: int, losses: Sequence[float]) -> bool:
        """Receive the losses of the epoch so far; return whether to stop here."""
        ...

    def stopped(self, epoch: int, losses: Sequence[float]) -> None:
        """Receive the losses of the epoch in which training stops."""
        ...

    def after_epoch(self, epoch: Epoch) -> tuple[Epoch, bool]:
        """Receive a finished epoch; return it with its validation, and whether to stop here."""
        ...


def train(plan: BatchSchedule, count: int, begin: Position, step: Callable[[Array, Moment, Array | None], float], watch: Watch) -> History:
    """Call ``step(indices, moment, following)`` for every remaining batch, with the indices of the following batch (None: none)."""
    used = count - count % plan.batch if plan.full_batches_only else count
    history = History(dropped=count - used)
    parts = [slice(at, min(at + plan.batch, used)) for at in range(0, used, plan.batch)]
    batches = _batches(plan, count, parts, begin)
    following = next(batches, None)
    losses, stop = list(begin.losses), False
    for epoch in range(begin.epoch, begin.until):
        began = time.perf_counter()
        for _ in range(len(losses), len(parts)):
            chosen, following = following, next(batches, None)
            assert chosen is not None, "there are as many batches as epochs have"
            losses.append(step(chosen, Moment(epoch * len(parts) + len(losses), epoch, len(parts)), following))
            stop = watch.after_batch(epoch, losses)
            if stop and len(losses) < len(parts):
                watch.stopped(epoch, losses)
                return history
        done = Epoch(epoch, begin.until, float(np.average(losses, weights=[p.stop - p.start for p in parts])), time.perf_counter() - began)
        history.batch_losses.append(losses)
        history.losses.append(done.loss)
        history.seconds.append(done.seconds)
        done, enough = watch.after_epoch(done)
        if done.validation is not None:
            history.validation.append(done.validation)
        losses = []
        if stop or enough:
            history.stopped_early = enough
            break
    return history


def _batches(plan: BatchSchedule, count: int, parts: Sequence[slice], begin: Position) -> Iterator[Array]:
    """Indices of every remaining batch."""
    generator = Stream(plan.seed)
    for _ in range(begin.epoch if plan.shuffle else 0):
        generator.permutation(count)
    for epoch in range(begin.epoch, begin.until):
        order = generator.permutation(count) if plan.shuffle else np.arange(count)
        yield from (order[part] for part in parts[begin.batch if epoch == begin.epoch else 0 :])


def check_count(name: str, value: object, least: int) -> None:
    """Refuse a count that is not a whole number of `least` or more.

    Raises
    ------
    TrainingOptionError
        It is not.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise TrainingOptionError(f"{name} is {value!r}; it must be a whole number of {least} or more.")
