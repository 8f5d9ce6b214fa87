"""Training on a stream of batches: from a DataLoader, a list, a generator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from snnc.backends.runtime.data_sets import BatchedData
from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import BatchesError, BatchSizeError, LabelsMissingError, TrainingOptionError, UnsharedTargetError
from snnc.backends.runtime.events import Events
from snnc.backends.runtime.history import Epoch, History, TrainingProgress
from snnc.backends.training.checkpoint import Position, TrainingRecipe
from snnc.backends.training.loop import BatchSchedule, batches_of, check_epochs, update_size
from snnc.backends.training.progress import ProgressGuard
from snnc.backends.training.ranks import ranks_for
from snnc.backends.training.run_values import RunValues
from snnc.backends.training.schedules import Moment
from snnc.backends.training.updates import Updates
from snnc.backends.training.watching import Watching
from snnc.compiler.ir.arrays.randomness import Stream

if TYPE_CHECKING:
    from snnc.backends.runtime.events import InputValues
    from snnc.backends.session import BackendSession


@dataclass(frozen=True)
class _Batch:
    """Checked samples and their labels."""

    data: Mapping[str, InputValues]
    labels: Array
    in_time: bool = False
    """Whether time is the first axis of the samples, and not the second."""


@dataclass(frozen=True)
class DataSetEpochs:
    """The batches of a data set, shuffled as arrays are: epoch after epoch, a new permutation each.

    Parameters
    ----------
    data
        The data set.
    plan
        Sizes and order.
    """

    data: BatchedData
    plan: BatchSchedule

    def __len__(self) -> int:
        return batches_of(self.plan, len(self.data))

    def of(self, epoch: int) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of an epoch, counted from 0 of the whole training."""
        order = None
        if self.plan.shuffle:
            stream = Stream(self.plan.seed)
            for _ in range(epoch + 1):
                order = stream.permutation(len(self.data))
        yield from self.data.batches(self.plan.batch, order=order, epoch=epoch)


@dataclass(frozen=True)
class StreamOptions:
    """The other arguments of a training on batches; see :meth:`snnc.backends.session.BackendSession.fit`."""

    epochs: int
    first_epoch: int
    rate: Callable[[Moment], float]
    values: RunValues
    accumulate: int
    callback: Callable[[TrainingProgress], None] | None
    on_epoch: Callable[[Epoch], None] | None

    def position(self, epoch: int, batch: int = 0, batches: int = 0) -> Position:
        """Return the position of the training, for messages."""
        recipe = TrainingRecipe(self.first_epoch, 0, 0, False, 0, self.accumulate, None, "")
        return Position(recipe, self.first_epoch + self.epochs, max(batch, batches), self.first_epoch + epoch, batch)


def is_stream(x: object, y: object) -> bool:
    """Return whether `x` yields batches, instead of being samples with labels `y`: an iterator or DataLoader, or a list without labels."""
    if isinstance(x, Mapping | Events | str | bytes) or hasattr(x, "__array__") or not isinstance(x, Iterable):
        return False
    return y is None or not isinstance(x, list | tuple)


def fit_batches(session: BackendSession, batches: Iterable[Any] | DataSetEpochs, options: StreamOptions) -> History:
    """Train on batches ``(x, y)``, an update each, in the order in which they come.

    Raises
    ------
    BatchesError
        A batch is not a pair, or there is none: an iterator yields its batches once.
    DivergedError
        A loss is not finite, or a parameter is at the end of an epoch; the session holds those of the previous epoch.
    SessionError
        A batch does not fit the network.
    """
    check_epochs(options.epochs, options.first_epoch)
    if isinstance(batches, Iterator) and options.epochs > 1:
        raise BatchesError(
            f"epochs is {options.epochs}, and a {type(batches).__name__} yields its batches once; give an iterable that can be repeated, "
            "such as a DataLoader or a list, or call fit with epochs=1 and a new iterator for each epoch."
        )
    known = len(batches) if isinstance(batches, Sized) else 0
    history, updates = History(), options.first_epoch * known
    guard = ProgressGuard(session.engine, session.program, None)
    guard.save(options.position(0))
    for epoch in range(options.epochs):
        began = time.perf_counter()
        losses, sizes, history.dropped = _epoch(session, batches, epoch, options, guard, updates)
        updates += len(losses)
        guard.save(options.position(epoch + 1))
        number, until = options.first_epoch + epoch, options.first_epoch + options.epochs
        done = Epoch(number, until, float(np.average(losses, weights=sizes)), time.perf_counter() - began)
        history.batch_losses.append(losses)
        history.losses.append(done.loss)
        history.seconds.append(done.seconds)
        if options.on_epoch is not None:
            options.on_epoch(done)
    return history


def _epoch(
    session: BackendSession, batches: Iterable[Any] | DataSetEpochs, epoch: int, options: StreamOptions, guard: ProgressGuard, updates: int
) -> tuple[list[float], list[int], int]:
    """Return the losses and sizes of all batches, and the number of skipped samples."""
    known = len(batches) if isinstance(batches, Sized) else 0
    losses: list[float] = []
    sizes: list[int] = []
    dropped = 0
    wanted = None if session.engine.batch is None else update_size(session.engine.batch, options.accumulate)
    found = (
        _of_data_set(session, batches, options.first_epoch + epoch) if isinstance(batches, DataSetEpochs) else _checked(session, batches)
    )
    for number, batch in enumerate(found):
        size = len(batch.labels)
        if dropped or (wanted is not None and size != wanted):
            dropped = _left_out(wanted, number, dropped, size)
            continue
        when = Moment(updates + number, options.first_epoch + epoch, known or None)
        rate = options.rate(when)
        options.values.set_for(when)
        losses.append(_update(session, batch, rate, options.accumulate))
        sizes.append(size)
        guard.check_loss(options.position(epoch, number + 1, known), losses[-1])
        if options.callback is not None:
            options.callback(TrainingProgress(epoch, options.epochs, number, max(known, number + 1), losses[-1], when.update, rate))
    if not losses:
        raise BatchesError(_nothing(batches, epoch, dropped, wanted))
    return losses, sizes, dropped


def _left_out(wanted: int | None, number: int, dropped: int, size: int) -> int:
    """Skip the last batch of an epoch if it is too small for the program; refuse any other batch of another size."""
    if dropped or size > (wanted or 0):
        wrong, at = (dropped, number - 1) if dropped else (size, number)
        raise BatchSizeError(
            f"batch {at} has {wrong} samples, and the network was compiled for {wanted}; only the last one may be smaller "
            "(and is left out). Give batches of that size, or compile again with batch=…."
        )
    return size


def _nothing(batches: object, epoch: int, dropped: int, size: int | None) -> str:
    if dropped:
        return f"the only batch has {dropped} samples, and the network was compiled for {size}; compile for a smaller batch."
    again = "" if epoch == 0 else ", but gave some in the epoch before: it cannot be repeated"
    return f"the {type(batches).__name__} gave no batch in epoch {epoch}{again}. It is empty, or an exhausted iterator."


def _checked(session: BackendSession, batches: Iterable[Any]) -> Iterator[_Batch]:
    for number, batch in enumerate(batches):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            what = f"{len(batch)} things" if isinstance(batch, tuple | list) else f"a {type(batch).__name__}"
            raise BatchesError(f"batch {number} is {what}; a batch is a pair (x, y) of samples and labels.")
        x, y = batch
        yield _Batch(*session.labelled(x, y))


def _of_data_set(session: BackendSession, epochs: DataSetEpochs, epoch: int) -> Iterator[_Batch]:
    for inputs, targets in epochs.of(epoch):
        yield _Batch(*session.labelled_sequences(inputs, targets), in_time=True)


def _update(session: BackendSession, batch: _Batch, rate: float, accumulate: int) -> float:
    def chosen(which: Array) -> tuple[dict[str, Array], Array]:
        data = session.part_of(batch.data, which) if batch.in_time else session.batch_of(batch.data, which)
        return data, batch.labels[which].astype(np.int64)

    return Updates(session.engine, chosen, accumulate=accumulate).make(np.arange(len(batch.labels)), None, rate)


def check_data_set(
    session: BackendSession, data: BatchedData, y: object, distributed: bool, checkpoints: object, watching: Watching
) -> None:
    """Refuse arguments that cannot be combined with a data set.

    Raises
    ------
    LabelsMissingError
        `y` is given, or the data set is empty.
    TrainingOptionError, UnsharedTargetError
        A file of checkpoints is given, or several processes train.
    """
    if y is not None:
        raise LabelsMissingError(f"y is given, and a {type(data).__name__} gives its own targets; leave y out.")
    if len(data) == 0:
        raise BatchesError("the data set has no samples.")
    if checkpoints is not None:
        raise TrainingOptionError(
            "checkpoints are for arrays, not yet for data sets; leave checkpoints out, save the session after each epoch, "
            "on_epoch=lambda epoch: session.save(path, optimizer=True), and go on with first_epoch=…."
        )
    _check_unwatched(watching, "is a data set")
    if distributed and ranks_for(session.engine, 1) is not None:
        raise UnsharedTargetError("processes that train together share arrays; give arrays, or distributed=False with a data set for each.")


def _check_unwatched(watching: Watching, what: str) -> None:
    """Refuse validation and logs."""
    if watching.validate is not None or watching.log is not None or watching.tensorboard is not None:
        raise TrainingOptionError(
            f"validation, log and tensorboard are for arrays, and x {what}; leave them out, and measure in on_epoch: "
            "on_epoch=lambda epoch: print(session.evaluate(x, y))."
        )


def check_stream(
    session: BackendSession, x: object, y: object, batch: int | None, distributed: bool, checkpoints: object, watching: Watching
) -> None:
    """Refuse arguments that cannot be combined with batches.

    Raises
    ------
    LabelsMissingError
        `x` is samples, or `y` is given.
    TrainingOptionError, UnsharedTargetError
        A size of batches or a file of checkpoints is given, or several processes train.
    """
    if not is_stream(x, y):
        raise LabelsMissingError("y is missing: give fit(x, y), or batches, pairs (x, y), from a DataLoader, a list or a generator.")
    if y is not None:
        raise LabelsMissingError(
            f"y is given, and a {type(x).__name__} gives batches, pairs (x, y), that hold their labels; leave y out, or give x as an array."
        )
    if batch is not None:
        raise TrainingOptionError(f"batch is {batch}, and x yields batches already; leave batch out, or set it where the batches are made.")
    if checkpoints is not None:
        raise TrainingOptionError(
            "checkpoints need a position in arrays, and a stream of batches has none; leave checkpoints out, and save the session after "
            "each epoch: on_epoch=lambda epoch: session.save(path, optimizer=True)."
        )
    _check_unwatched(watching, "yields batches")
    if distributed and ranks_for(session.engine, 1) is not None:
        raise UnsharedTargetError(
            "processes that train together share arrays; give arrays, or pass snnc.torch.Module to "
            "DistributedDataParallel, or distributed=False to train each process by itself."
        )
