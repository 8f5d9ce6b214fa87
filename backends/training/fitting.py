"""A training run, from the start of ``fit`` to its end: resuming, saving of progress, and signals."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np

from snnc.backends.folders.folder_lock import locked
from snnc.backends.runtime.engine import Engine
from snnc.backends.runtime.errors import CheckpointError, ResumeError
from snnc.backends.runtime.history import Epoch, History, TrainingProgress
from snnc.backends.runtime.weights import read_weight_file
from snnc.backends.training.data.batches import Batch, TrainingData
from snnc.backends.training.plan import LearningRate, learning_rate, rate_in_words
from snnc.backends.training.saving.checkpoint import Checkpoints, Position, TrainingRecipe, check_same, position_in, set_entries
from snnc.backends.training.saving.progress import ProgressGuard
from snnc.backends.training.schedules import TrainingPosition
from snnc.backends.training.updates.ranks import Ranks, leads
from snnc.backends.training.updates.run_values import RunValues
from snnc.backends.training.updates.updates import Upcoming, Updates
from snnc.backends.training.validation.watching import Watching
from snnc.compiler.ir.step_program import StepProgram

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end training after the current batch, if progress is saved."""
_NOTICE: Final = b"stopping after this batch; a second signal stops immediately.\n"


@dataclass(frozen=True)
class FitArguments:
    """The checked arguments of ``fit``."""

    data: TrainingData
    learning_rate: LearningRate
    checkpoints: Checkpoints | None
    callback: Callable[[TrainingProgress], None] | None
    on_epoch: Callable[[Epoch], None] | None
    watching: Watching
    values: RunValues

    @property
    def recipe(self) -> TrainingRecipe:
        """The settings that must not change when training is resumed."""
        plan, rate = self.data.plan, rate_in_words(self.learning_rate)
        return TrainingRecipe(
            plan.first_epoch,
            self.data.samples,
            plan.batch,
            plan.shuffle,
            plan.seed,
            plan.accumulate,
            rate,
            self.data.digest,
            self.watching.text,
            self.values.window_text,
            self.values.capacity_text,
        )

    @property
    def start(self) -> Position:
        """The position of a training run that is not resumed."""
        plan, batches = self.data.plan, self.data.batches
        return Position(self.recipe, plan.first_epoch + plan.epochs, batches, plan.first_epoch, updates=plan.first_epoch * batches)


def starting_position(call: FitArguments, program: StepProgram, engine: Engine) -> Position:
    """Return the position at which training starts; with ``resume``, that of the checkpoint if it exists, whose state the engine then gets.

    Raises a ResumeError if the file belongs to a different training run, or contains no position, and other SessionErrors if it is damaged,
    or belongs to a different network.
    """
    start = call.start
    if call.checkpoints is None or not call.checkpoints.resume:
        return start
    path = Path(call.checkpoints.path)
    if not path.exists():
        return start
    entries, metadata = read_weight_file(path)
    position = position_in(path, entries, metadata)
    if position is None:
        raise ResumeError(f"{path} contains weights but no position of a training run; continue from the weights without resume.")
    check_same(position, start.recipe, path)
    if position.restored and not position.ended and start.until > position.epoch:
        raise ResumeError(f"{path} contains the best weights, restored at the end of training; resume cannot continue from them.")
    set_entries(program, engine, entries, strict=True, optimizer=True)
    return replace(position, until=position.epoch if position.ended else start.until)


class _TrainingRun:
    """The loop over epochs and batches; it checks and saves the progress, and reports it to the caller."""

    def __init__(
        self, call: FitArguments, begin: Position, guard: ProgressGuard, updates: Updates, rate: Callable[[TrainingPosition], float]
    ) -> None:
        self.call = call
        self.begin = begin
        self.guard = guard
        self.updates = updates
        self.rate = rate
        self.last_rate = math.nan
        self.finished_updates = begin.updates
        self.seen = begin.seen
        """Digest of the epoch's labels so far, only for a stream; see :class:`~snnc.backends.training.data.batches.Batch`."""
        self.validated = list(begin.validated)
        self.logs = call.watching.logs(begin)

    def train(self) -> History:
        data, losses = self.call.data, list(self.begin.losses)
        history = History(dropped=data.dropped)
        for number in range(self.begin.epoch, self.begin.until):
            began, stop = time.perf_counter(), False
            sizes, remaining = data.remaining(number, len(losses), self.seen)
            with closing(remaining):
                batches = _Batches(remaining)
                while (batch := batches.take()) is not None:
                    self._train_batch(batch, number, losses, batches.upcoming)
                    sizes.append(batch.count)
                    stop = self.updates.stopping
                    if stop and batches.upcoming() is not None:
                        self._save(number, losses)
                        return history
            history.dropped = data.dropped
            loss, seconds = float(np.average(losses, weights=sizes)), time.perf_counter() - began
            epoch = Epoch(number, self.begin.until, loss, seconds, learning_rate=self.last_rate, updates=self.finished_updates)
            history.batch_losses.append(losses)
            history.losses.append(epoch.loss)
            history.seconds.append(epoch.seconds)
            losses, self.seen = [], ""
            history.stopped_early = self._end_epoch(epoch, history)
            if stop or history.stopped_early:
                break
        return history

    def _train_batch(self, batch: Batch, epoch: int, losses: list[float], upcoming: Upcoming) -> None:
        call, plan, batches = self.call, self.call.data.plan, self.begin.batches
        validation_losses = None if call.watching.validation is None else [loss for loss, _ in self.validated]
        when = TrainingPosition(self.finished_updates, epoch, call.data.batches or None, validation_losses)
        self.last_rate = self.rate(when)
        call.values.set_for(when)
        losses.append(self.updates.make(batch, upcoming, self.last_rate))
        self.guard.check_loss(replace(self.begin, epoch=epoch, batch=len(losses)), losses[-1])
        self.finished_updates, self.seen = when.update + 1, batch.seen
        number, at_least = len(losses) - 1, max(batches, len(losses))
        progress = TrainingProgress(epoch - plan.first_epoch, plan.epochs, number, at_least, losses[-1], when.update, self.last_rate)
        for log in self.logs:
            log.after_batch(progress)
        if call.callback is not None:
            call.callback(progress)
        if self.guard.due and len(losses) != batches:
            self._save(epoch, losses)

    def _end_epoch(self, epoch: Epoch, history: History) -> bool:
        """Validate, log and save after an epoch; return whether training stops early."""
        watching, ended = self.call.watching, False
        self.guard.checked(self._position(epoch.number + 1, ()))
        if watching.validation is not None:
            result = watching.validation.measure()
            epoch = replace(epoch, validation=result)
            history.validation.append(result)
            self.validated.append((result.loss, result.accuracy))
            ended = watching.stopping.stops(self.validated)
            if watching.stopping.best(self.validated) == len(self.validated) - 1:
                self.guard.keep_best(watching.best, self._position(epoch.number + 1, ()))
        for log in self.logs:
            log.after_epoch(epoch)
        self._save(epoch.number + 1, (), ended=ended)
        if self.call.on_epoch is not None:
            self.call.on_epoch(epoch)
        return ended

    def _position(self, epoch: int, losses: Sequence[float], ended: bool = False) -> Position:
        here = replace(self.begin, epoch=epoch, batch=len(losses), losses=tuple(losses), seen=self.seen)
        return replace(here, updates=self.finished_updates, validated=tuple(self.validated), ended=ended)

    def _save(self, epoch: int, losses: Sequence[float], ended: bool = False) -> None:
        self.guard.save(self._position(epoch, losses, ended))

    def restore_best(self) -> None:
        """Restore the best weights, and save them as the result of the finished run."""
        best = self.call.watching.stopping.best(self.validated)
        if best is not None and not self.begin.restored:
            first = self.call.data.plan.first_epoch
            epochs = first + len(self.validated)
            self.guard.restore_best(self.call.watching.best, first + best + 1)
            self.guard.save(replace(self._position(epochs, (), ended=self.begin.ended or epochs < self.begin.until), restored=True))


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


def fit(call: FitArguments, program: StepProgram, engine: Engine, ranks: Ranks | None) -> History:
    """Train from the beginning, or from the position of a checkpoint, and save the progress.

    Raises a DivergedError if a loss, a parameter or a moment is not finite, a CheckpointError if the progress cannot be saved, a
    RanksDifferError if the processes of `ranks` would train different networks, and the errors of :func:`starting_position`.
    """
    updates = Updates(engine, accumulate=call.data.plan.accumulate, ranks=ranks)
    begin = starting_position(call, program, engine)
    if ranks is not None:
        ranks.begin((call.data.plan, begin.epoch, begin.batch, call.data.agreed), call.data.labels)
    history = _trained(call, begin, program, engine, updates)
    if ranks is not None and not updates.stopping:
        ranks.end()
    return history


def _trained(call: FitArguments, begin: Position, program: StepProgram, engine: Engine, updates: Updates) -> History:
    assert program.optimizer is not None, "checked by the caller"
    rate = learning_rate(program.optimizer, call.learning_rate)
    guard = ProgressGuard(engine, program, call.checkpoints if leads() else None)
    files = (guard.file, call.watching.best) if leads() else ()
    with _locking(files), stoppable(call.checkpoints is not None) as stop:
        updates.stop_requested = lambda: stop.requested is not None
        if not begin.finished:
            guard.save(begin)
        run = _TrainingRun(call, begin, guard, updates, rate)
        try:
            history = run.train()
        finally:
            for log in run.logs:
                log.close()
        best = call.watching.stopping.best(run.validated)
        history.best_epoch = None if best is None else call.data.plan.first_epoch + best
        if call.watching.restore_best and not updates.stopping:
            if updates.ranks is not None:
                updates.ranks.meet()
            run.restore_best()
        if updates.stopping and stop.requested is None:
            stop.requested = signal.SIGTERM  # another process of this run received a signal
    return history


@contextmanager
def _locking(files: Iterable[Path | None]) -> Iterator[None]:
    with ExitStack() as locks:
        for path in (path for path in files if path is not None):
            try:
                locks.enter_context(locked(path, "trains"))
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise CheckpointError(f"the checkpoint {str(path)!r} cannot be written: {reason}; nothing was trained.") from None
        yield


class Stop:
    """A request to stop, if any."""

    def __init__(self) -> None:
        self.requested: int | None = None
        """The signal that requested it; None: no request."""

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Record the first signal; stop at once on the second."""
        if self.requested is not None:
            raise KeyboardInterrupt
        self.requested = number
        os.write(2, _NOTICE)  # print may fail in a signal handler


@contextmanager
def stoppable(enabled: bool) -> Iterator[Stop]:
    """Record signals while the block runs; if it ends normally, the recorded signal then has its usual effect.

    Nothing is recorded if `enabled` is False, or outside the main thread, because only that thread receives signals. Ignored signals
    stay ignored.
    """
    stop = Stop()
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, stop.on_signal)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stop.requested is not None:
        signal.raise_signal(stop.requested)
