"""One call of ``fit``: its start, its saved progress, and its end."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from snnc.backends.runtime.engine import Array, Engine
from snnc.backends.runtime.errors import ResumeError
from snnc.backends.runtime.history import Epoch, History, TrainingProgress
from snnc.backends.runtime.weights import read_weight_file
from snnc.backends.training import loop as training
from snnc.backends.training.checkpoint import Checkpoints, Position, TrainingRecipe, check_same, digest_of_labels, position_in
from snnc.backends.training.progress import ProgressFile, ProgressGuard
from snnc.backends.training.ranks import leads
from snnc.backends.training.stopping import stoppable
from snnc.backends.training.updates import Updates
from snnc.backends.training.weight_entries import set_entries
from snnc.compiler.ir.step_program import StepProgram


@dataclass(frozen=True)
class FitArguments:
    """The checked arguments of ``fit``."""

    schedule: training.BatchSchedule
    samples: int
    labels: Array
    learning_rate: float | Callable[[int], float] | None
    accumulate: int
    checkpoints: Checkpoints | None
    callback: Callable[[TrainingProgress], None] | None
    on_epoch: Callable[[Epoch], None] | None

    @property
    def recipe(self) -> TrainingRecipe:
        """Settings that must be the same when the training continues."""
        plan, rate = self.schedule, self.learning_rate
        number = None if rate is None or callable(rate) else float(rate)
        return TrainingRecipe(
            plan.first_epoch, self.samples, plan.batch, plan.shuffle, plan.seed, self.accumulate, number, digest_of_labels(self.labels)
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
        raise ResumeError(f"{path} holds weights, but not where a training stands; train on from them without resume.")
    check_same(found, start.recipe, path)
    set_entries(program, engine, entries, strict=True, optimizer=True)
    return replace(found, until=start.until)


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

    def after_batch(self, epoch: int, losses: Sequence[float]) -> bool:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        if not math.isfinite(losses[-1]):
            self.guard.check_loss(replace(self.begin, epoch=epoch, batch=len(losses)), losses[-1])
        if self.call.callback is not None:
            first, epochs = self.call.schedule.first_epoch, self.call.schedule.epochs
            self.call.callback(TrainingProgress(epoch - first, epochs, len(losses) - 1, self.begin.batches, losses[-1]))
        if self.guard.due and len(losses) < self.begin.batches:
            self._save(epoch, losses)
        return self.stop()

    def stopped(self, epoch: int, losses: Sequence[float]) -> None:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        self._save(epoch, losses)

    def after_epoch(self, epoch: Epoch) -> None:
        """See :class:`~snnc.backends.training.loop.Watch`."""
        self._save(epoch.number + 1, ())
        if self.call.on_epoch is not None:
            self.call.on_epoch(epoch)

    def _save(self, epoch: int, losses: Sequence[float]) -> None:
        self.guard.save(replace(self.begin, epoch=epoch, batch=len(losses), losses=tuple(losses)))


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
    wanted = call.checkpoints
    file = None if wanted is None or not leads() else ProgressFile(Path(wanted.path), wanted.seconds)
    guard = ProgressGuard(engine, program, file)
    with stoppable(wanted is not None) as stop:
        updates.asked = lambda: stop.asked is not None
        guard.save(begin)

        def step(chosen: Array, epoch: int, following: Array | None) -> float:
            return updates.make(chosen, following, rate(epoch))

        history = training.train(call.schedule, call.samples, begin, step, _Watch(call, begin, guard, lambda: updates.stopping))
        if updates.stopping and stop.asked is None:
            stop.asked = signal.SIGTERM  # another process of those that train together was asked
    return history
