"""A training run, from the start of ``fit`` to its end: resuming, saving of progress, and signals."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from snnc.backends.folders.folder_lock import locked
from snnc.backends.runtime.engine import Engine
from snnc.backends.runtime.errors import CheckpointError, ResumeError, UnsharedTargetError
from snnc.backends.runtime.history import Epoch, History, TrainingProgress
from snnc.backends.runtime.weights import read_weight_file
from snnc.backends.training.data.batches import Batch, TrainingData
from snnc.backends.training.loop import Upcoming, train
from snnc.backends.training.plan import LearningRate, learning_rate, rate_in_words
from snnc.backends.training.saving.checkpoint import Checkpoints, Position, TrainingRecipe, check_same, position_in, set_entries
from snnc.backends.training.saving.progress import ProgressGuard
from snnc.backends.training.schedules import TrainingPosition
from snnc.backends.training.updates.ranks import Ranks, leads, processes, ranks_for
from snnc.backends.training.updates.run_values import RunValues
from snnc.backends.training.updates.updates import Updates
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
    accumulate: int
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
            self.accumulate,
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


def find_ranks(data: TrainingData, engine: Engine, distributed: bool) -> Ranks | None:
    """Return the processes that train together; None if this one trains alone.

    Raises
    ------
    UnsharedTargetError, ShareError
        The data, the target or the batch cannot be shared by processes.
    """
    if not distributed or processes() == 1:
        return None
    if not data.samples:
        raise UnsharedTargetError(
            "processes that train together share arrays or a data set, but x yields batches; give arrays or a data set, or use "
            "snnc.torch.Module with DistributedDataParallel, or distributed=False to train each process by itself."
        )
    return ranks_for(engine, data.plan.batch)


def starting_position(call: FitArguments, program: StepProgram, engine: Engine) -> Position:
    """Return the position at which training starts; with ``resume``, that of the checkpoint if it exists, whose state the engine then gets.

    Raises
    ------
    ResumeError
        The file belongs to a different training run, or contains no position.
    SessionError
        The file is damaged, or belongs to a different network.
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


class _Watch:
    """Checks and saves the progress of training, and reports it to the caller: the :class:`~snnc.backends.training.loop.Watch` of ``fit``.

    Parameters
    ----------
    call, begin
        Arguments of the call, and the starting position.
    guard
        Object that saves the progress.
    stop
        Function that returns whether training must stop after this batch.
    """

    def __init__(self, call: FitArguments, begin: Position, guard: ProgressGuard, stop: Callable[[], bool]) -> None:
        self.call = call
        self.begin = begin
        self.guard = guard
        self.stop = stop
        self.rate = math.nan
        """Learning rate of the last update."""
        self.updates = begin.updates
        """Number of finished updates."""
        self.seen = begin.seen
        """See :class:`~snnc.backends.training.data.batches.Batch`."""
        self.validated = list(begin.validated)
        self.logs = call.watching.logs(begin)

    def after_batch(self, batch: Batch, when: TrainingPosition, losses: Sequence[float]) -> bool:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        epoch, number, batches = when.epoch or 0, len(losses) - 1, self.begin.batches
        self.guard.check_loss(replace(self.begin, epoch=epoch, batch=len(losses)), losses[-1])
        self.updates, self.seen = when.update + 1, batch.seen
        plan = self.call.data.plan
        at_least = max(batches, len(losses))
        progress = TrainingProgress(epoch - plan.first_epoch, plan.epochs, number, at_least, losses[-1], when.update, self.rate)
        self.logs.after_batch(progress)
        if self.call.callback is not None:
            self.call.callback(progress)
        if self.guard.due and len(losses) != batches:
            self._save(epoch, losses)
        return self.stop()

    def stopped(self, epoch: int, losses: Sequence[float]) -> None:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        self._save(epoch, losses)

    def after_epoch(self, epoch: Epoch) -> tuple[Epoch, bool]:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        watching, ended = self.call.watching, False
        epoch = replace(epoch, learning_rate=self.rate)
        self.guard.check(self._position(epoch.number + 1, ()))
        if watching.validate is not None:
            result = watching.validate()
            epoch = replace(epoch, validation=result)
            self.validated.append((result.loss, result.accuracy))
            ended = watching.stopping.stops(self.validated)
            if watching.stopping.best(self.validated) == len(self.validated) - 1:
                self.guard.keep_best(watching.best, self._position(epoch.number + 1, ()))
        self.logs.after_epoch(epoch)
        self._save(epoch.number + 1, (), ended=ended)
        if self.call.on_epoch is not None:
            self.call.on_epoch(epoch)
        return epoch, ended

    def _position(self, epoch: int, losses: Sequence[float], ended: bool = False) -> Position:
        here = replace(self.begin, epoch=epoch, batch=len(losses), losses=tuple(losses), seen=self.seen if losses else "")
        return replace(here, updates=self.updates, validated=tuple(self.validated), ended=ended)

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


def fit(call: FitArguments, program: StepProgram, engine: Engine, ranks: Ranks | None) -> History:
    """Train from the beginning, or from the position of a checkpoint, and save the progress.

    Raises
    ------
    DivergedError
        A loss, a parameter or a moment is not finite.
    CheckpointError
        The progress cannot be saved.
    ResumeError, SessionError
        See :func:`starting_position`; also raised if the processes of `ranks` would train different networks.
    """
    updates = Updates(engine, accumulate=call.accumulate, ranks=ranks)
    begin = starting_position(call, program, engine)
    if ranks is not None:
        ranks.begin((call.data.plan, begin.epoch, begin.batch, call.accumulate, call.data.agreed), call.data.labels)
    history = _trained(call, begin, program, engine, updates)
    if ranks is not None and not updates.stopping:
        ranks.end()
    return history


def _trained(call: FitArguments, begin: Position, program: StepProgram, engine: Engine, updates: Updates) -> History:
    """Train until the last epoch, an early stop or a signal, and return the history."""
    assert program.optimizer is not None, "checked by the caller"
    rate = learning_rate(program.optimizer, call.learning_rate)
    guard = ProgressGuard(engine, program, call.checkpoints if leads() else None)
    files = (guard.file, call.watching.best) if leads() else ()
    with _locking(files), stoppable(call.checkpoints is not None) as stop:
        updates.stop_requested = lambda: stop.requested is not None
        if not begin.finished:
            guard.save(begin)
        watch = _Watch(call, begin, guard, lambda: updates.stopping)

        def step(batch: Batch, when: TrainingPosition, upcoming: Upcoming) -> float:
            losses = None if call.watching.validate is None else [loss for loss, _ in watch.validated]
            when = replace(when, losses=losses)
            watch.rate = rate(when)
            call.values.set_for(when)
            return updates.make(batch, upcoming, watch.rate)

        try:
            history = train(call.data, begin, step, watch)
        finally:
            watch.logs.close()
        best = call.watching.stopping.best(watch.validated)
        history.best_epoch = None if best is None else call.data.plan.first_epoch + best
        if call.watching.restore_best and not updates.stopping:
            if updates.ranks is not None:
                updates.ranks.meet()
            watch.restore_best()
        if updates.stopping and stop.requested is None:
            stop.requested = signal.SIGTERM  # another process of this run received a signal
    return history


@contextmanager
def _locking(files: Iterable[Path | None]) -> Iterator[None]:
    """Lock the weight files that training writes, while the block runs."""
    with ExitStack() as locks:
        for path in (path for path in files if path is not None):
            try:
                locks.enter_context(locked(path, "trains"))
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise CheckpointError(f"the checkpoint {str(path)!r} cannot be written: {reason}; nothing was trained.") from None
        yield


class Stop:
    """A request to stop, if any.

    Attributes
    ----------
    requested
        The signal that requested it; None: no request.
    """

    def __init__(self) -> None:
        self.requested: int | None = None

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
