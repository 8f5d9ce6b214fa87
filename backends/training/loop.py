"""The loop over epochs and batches; :mod:`snnc.backends.training.fitting` makes the updates, saves the progress and handles signals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Protocol, TypeAlias

import numpy as np

from snnc.backends.runtime.history import Epoch, History
from snnc.backends.training.data.batches import Batch, TrainingData
from snnc.backends.training.saving.checkpoint import Position
from snnc.backends.training.schedules import TrainingPosition

Upcoming: TypeAlias = Callable[[], Batch | None]
"""Function that returns the next batch of the epoch, or None at its end; a stream produces the batch on request."""


class Watch(Protocol):
    """Observer of a training run."""

    def after_batch(self, batch: Batch, when: TrainingPosition, losses: Sequence[float]) -> bool:
        """Receive the batch and position of an update, and the losses of the epoch so far; return whether to stop."""

    def stopped(self, epoch: int, losses: Sequence[float]) -> None:
        """Receive the losses of the finished batches of an epoch, if training stops before its end."""

    def after_epoch(self, epoch: Epoch) -> tuple[Epoch, bool]:
        """Receive a finished epoch; return it with its validation results, and whether to stop."""


def train(data: TrainingData, begin: Position, step: Callable[[Batch, TrainingPosition, Upcoming], float], watch: Watch) -> History:
    """Call ``step(batch, position, upcoming)`` for every remaining batch, until `watch` stops training; return the history.

    `step` makes the update of the batch and returns its loss.
    """
    history, losses, updates, seen = History(dropped=data.dropped), list(begin.losses), begin.updates, begin.seen
    for epoch in range(begin.epoch, begin.until):
        began, stop = time.perf_counter(), False
        sizes, remaining = data.remaining(epoch, len(losses), seen)
        with closing(_Batches(remaining)) as batches:
            while (batch := batches.take()) is not None:
                when = TrainingPosition(updates, epoch, data.batches or None)
                losses.append(step(batch, when, batches.upcoming))
                sizes.append(batch.count)
                updates += 1
                stop = watch.after_batch(batch, when, losses)
                if stop and batches.upcoming() is not None:
                    watch.stopped(epoch, losses)
                    return history
        history.dropped = data.dropped
        finished = Epoch(epoch, begin.until, float(np.average(losses, weights=sizes)), time.perf_counter() - began, updates=updates)
        history.batch_losses.append(losses)
        history.losses.append(finished.loss)
        history.seconds.append(finished.seconds)
        finished, ended = watch.after_epoch(finished)
        if finished.validation is not None:
            history.validation.append(finished.validation)
        losses, seen = [], ""
        if stop or ended:
            history.stopped_early = ended
            break
    return history


class _Batches:
    """Iterator of batches that can look ahead by one batch."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches
        self._ahead: list[Batch | None] = []
        """The next batch, or the None after the last one, if it has been looked at."""

    def take(self) -> Batch | None:
        """Return the next batch and advance; None at the end."""
        return self._ahead.pop() if self._ahead else next(self._batches, None)

    def upcoming(self) -> Batch | None:
        """Return the next batch without advancing; None at the end."""
        if not self._ahead:
            self._ahead.append(next(self._batches, None))
        return self._ahead[0]

    def close(self) -> None:
        """Close the source of the batches."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()
