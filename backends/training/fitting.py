"""One call of ``fit``: its start, its saved progress, and its end."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from snnc.backends.folders.folder_lock import locked_file
from snnc.backends.runtime.engine import Array, Engine
from snnc.backends.runtime.errors import CheckpointError, ResumeError
from snnc.backends.runtime.history import Epoch, History, TrainingProgress
from snnc.backends.runtime.weights import read_weight_file
from snnc.backends.training import loop as training
from snnc.backends.training.checkpoint import Checkpoints, Position, TrainingRecipe, check_same, digest_of_labels, position_in, set_entries
from snnc.backends.training.progress import ProgressFile, ProgressGuard
from snnc.backends.training.ranks import leads
from snnc.backends.training.run_values import RunValues
from snnc.backends.training.schedules import Moment
from snnc.backends.training.updates import Updates
from snnc.backends.training.watching import Watching
from snnc.compiler.ir.step_program import StepProgram

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOTICE: Final = b"stopping after this batch; a second signal stops immediately.\n"


@dataclass(frozen=True)
class FitArguments:
    """The checked arguments of ``fit``."""

    schedule: training.BatchSchedule
    samples: int
    labels: Array
    learning_rate: training.LearningRate
    accumulate: int
    checkpoints: Checkpoints | None
    callback: Callable[[TrainingProgress], None] | None
    on_epoch: Callable[[Epoch], None] | None
    watching: Watching
    values: RunValues

    @property
    def recipe(self) -> TrainingRecipe:
        """Settings that must be the same when the training continues."""
        plan, rate = self.schedule, training.rate_in_words(self.learning_rate)
        return TrainingRecipe(
            plan.first_epoch,
            self.samples,
            plan.batch,
            plan.shuffle,
            plan.seed,
            self.accumulate,
            rate,
            digest_of_labels(self.labels),
            self.watching.text,
            self.values.text,
        )


def beginning(call: FitArguments, program: StepProgram, engine: Engine) -> Position:
    """Return the starting position; with ``resume``, the engine gets the state of the file.

    Raises
    ------
    ResumeError
        The file belongs to another training, or has no position.
    SessionError
        It is damaged, or belongs to another network.
    """
    plan = call.schedule
    start = Position(call.recipe, plan.first_epoch + plan.epochs, training.batches_of(plan, call.samples), plan.first_epoch)
    if call.checkpoints is None or not call.checkpoints.resume:
        return start
    path = Path(call.checkpoints.path)
    if not path.exists():
        return start
    entries, metadata = read_weight_file(path)
    found = position_in(path, entries, metadata)
    if found is None:
        raise ResumeError(f"{path} holds weights, but no position of a training; continue from the weights without resume.")
    check_same(found, start.recipe, path)
    if found.restored and not found.ended and start.until > found.epoch:
        raise ResumeError(f"{path} holds the best weights, which were restored at the end; they cannot be trained further with resume.")
    set_entries(program, engine, entries, strict=True, optimizer=True)
    return replace(found, until=found.epoch if found.ended else start.until)


class _Watch:
    """Checks and saves the progress of a training, and reports it to the caller.

    Parameters
    ----------
    call, begin
        The training, and its starting position.
    guard
        Saves the progress.
    stop
        Whether training must stop after this batch.
    """

    def __init__(self, call: FitArguments, begin: Position, guard: ProgressGuard, stop: Callable[[], bool]) -> None:
        self.call = call
        self.begin = begin
        self.guard = guard
        self.stop = stop
        self.rate = math.nan
        """Learning rate of the last update."""
        self.validated = list(begin.validated)
        self.logs = call.watching.logs(begin)

    def after_batch(self, epoch: int, losses: Sequence[float]) -> bool:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        if not math.isfinite(losses[-1]):
            self.guard.check_loss(replace(self.begin, epoch=epoch, batch=len(losses)), losses[-1])
        first, epochs, number = self.call.schedule.first_epoch, self.call.schedule.epochs, len(losses) - 1
        update = epoch * self.begin.batches + number
        progress = TrainingProgress(epoch - first, epochs, number, self.begin.batches, losses[-1], update, self.rate)
        self.logs.after_batch(progress)
        if self.call.callback is not None:
            self.call.callback(progress)
        if self.guard.due and len(losses) < self.begin.batches:
            self._save(epoch, losses)
        return self.stop()

    def stopped(self, epoch: int, losses: Sequence[float]) -> None:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        self._save(epoch, losses)

    def after_epoch(self, epoch: Epoch) -> tuple[Epoch, bool]:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        watching, updates = self.call.watching, (epoch.number + 1) * self.begin.batches
        enough = False
        epoch = replace(epoch, learning_rate=self.rate, updates=updates)
        self.guard.check(self._position(epoch.number + 1, ()))
        if watching.validate is not None:
            found = watching.validate()
            epoch = replace(epoch, validation=found)
            self.validated.append((found.loss, found.accuracy))
            enough = watching.stopping.stops(self.validated)
            if watching.stopping.best(self.validated) == len(self.validated) - 1:
                self.guard.keep_best(watching.best, self._position(epoch.number + 1, ()))
        self.logs.after_epoch(epoch)
        self._save(epoch.number + 1, (), ended=enough)
        if self.call.on_epoch is not None:
            self.call.on_epoch(epoch)
        return epoch, enough

    def _position(self, epoch: int, losses: Sequence[float], ended: bool = False) -> Position:
        return replace(self.begin, epoch=epoch, batch=len(losses), losses=tuple(losses), validated=tuple(self.validated), ended=ended)

    def _save(self, epoch: int, losses: Sequence[float], ended: bool = False) -> None:
        self.guard.save(self._position(epoch, losses, ended))

    def restore_best(self) -> None:
        """Set the best weights, and save them as those of the training that is over."""
        best = self.call.watching.stopping.best(self.validated)
        if best is not None and not self.begin.restored:
            at = self.call.schedule.first_epoch + len(self.validated)
            self.guard.restore_best(self.call.watching.best, self.call.schedule.first_epoch + best + 1)
            self.guard.save(replace(self._position(at, (), ended=self.begin.ended or at < self.begin.until), restored=True))


def fit(call: FitArguments, begin: Position, program: StepProgram, engine: Engine, updates: Updates) -> History:
    """Train from a position, and save the progress.

    Raises
    ------
    DivergedError
        A loss or a parameter is not finite.
    CheckpointError
        The progress cannot be saved.
    """
    assert program.optimizer is not None, "checked by the caller"
    rate = training.learning_rate(program.optimizer, call.learning_rate)
    saved = call.checkpoints
    file = None if saved is None or not leads() else ProgressFile(Path(saved.path), saved.seconds)
    guard = ProgressGuard(engine, program, file)
    with _alone(file), stoppable(saved is not None) as stop:
        updates.stop_requested = lambda: stop.requested is not None
        if not begin.finished:
            guard.save(begin)
        watch = _Watch(call, begin, guard, lambda: updates.stopping)

        def step(chosen: Array, when: Moment, following: Array | None) -> float:
            losses = None if call.watching.validate is None else [loss for loss, _ in watch.validated]
            when = replace(when, losses=losses)
            watch.rate = rate(when)
            call.values.set_for(when)
            return updates.make(chosen, following, watch.rate)

        try:
            history = training.train(call.schedule, call.samples, begin, step, watch)
        finally:
            watch.logs.close()
        best = call.watching.stopping.best(watch.validated)
        history.best_epoch = None if best is None else call.schedule.first_epoch + best
        if call.watching.restore_best and not updates.stopping:
            watch.restore_best()
        if updates.stopping and stop.requested is None:
            stop.requested = signal.SIGTERM  # another process of this training received a signal
    return history


@contextmanager
def _alone(file: ProgressFile | None) -> Iterator[None]:
    """Lock the file of checkpoints, if there is one, for this training."""
    if file is None:
        yield
        return
    try:
        with locked_file(file.path, "trains"):
            yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CheckpointError(f"the checkpoint {str(file.path)!r} cannot be written: {reason}; nothing was trained.") from None


class Stop:
    """A request to stop, if any.

    Attributes
    ----------
    requested
        The signal; None: no request.
    """

    def __init__(self) -> None:
        self.requested: int | None = None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Record the first signal; stop at once on the second one."""
        if self.requested is not None:
            raise KeyboardInterrupt
        self.requested = number
        os.write(2, _NOTICE)


@contextmanager
def stoppable(enabled: bool) -> Iterator[Stop]:
    """Record signals while the block runs; after it has ended normally, let the recorded one have its usual effect.

    Nothing is recorded unless `enabled`, nor outside the main thread, where Python receives no signals. An ignored signal
    stays ignored.
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
