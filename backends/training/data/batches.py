"""Batches of a training run, from arrays, a data set, or a stream: a DataLoader, a list or a generator of batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import BatchesError, BatchSizeError, ResumeError
from snnc.backends.runtime.events import InputValues
from snnc.backends.runtime.inputs import BatchedData, ProgramInputs
from snnc.backends.runtime.targets import as_targets
from snnc.backends.training.plan import BatchSchedule, check_count
from snnc.compiler.ir.arrays.randomness import Stream

BatchSamples: TypeAlias = tuple[dict[str, Array], Array]
"""Inputs by id, [T, B, *shape], and targets [B, ...]."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The samples of an update."""

    count: int
    samples_at: Callable[[Array], BatchSamples]
    """Function that returns the samples at given positions in the batch, in the engine's form: the positions of one
    process, or of the part of the batch whose gradients are accumulated next."""
    seen: str = ""
    """Digest of the epoch's labels up to and including this batch; only for a stream, whose labels are unknown in advance."""


class TrainingData(Protocol):
    """The source of a training run's batches."""

    @property
    def plan(self) -> BatchSchedule:
        """Number of epochs, and the division of samples into batches."""

    @property
    def samples(self) -> int:
        """Number of samples in an epoch; 0: unknown in advance."""

    @property
    def batches(self) -> int:
        """Number of batches in an epoch; 0: unknown in advance."""

    @property
    def digest(self) -> str:
        """Digest of the labels, or of the data set; empty for a stream. It must be the same when training is resumed."""

    @property
    def agreed(self) -> object:
        """Properties that must be equal in all processes that train together, in addition to the labels."""

    @property
    def labels(self) -> Array:
        """[samples]: the labels; empty if they are unknown in advance."""

    @property
    def dropped(self) -> int:
        """Number of samples that the last epoch skipped."""

    def remaining(self, epoch: int, done: int, seen: str) -> tuple[list[int], Generator[Batch]]:
        """Return the sizes of the first `done` batches of an epoch, which have been trained, and a generator of the remaining ones.

        Epochs are counted from 0 and include those of earlier training runs. `seen` is :attr:`Batch.seen` of the last trained batch. Raises
        a SessionError if the data cannot be continued at this position, or a batch does not fit the network.
        """


def digest_of_labels(labels: Array) -> str:
    """Return a digest of the labels of all samples."""
    return hashlib.sha256(np.ascontiguousarray(as_targets(labels)).tobytes()).hexdigest()


class EpochOrders:
    """The order of `count` samples in each epoch: a new permutation in every epoch if the plan shuffles them, else that of the data."""

    def __init__(self, plan: BatchSchedule, count: int) -> None:
        check_count("seed", plan.seed, 0)
        self.plan = plan
        self.count = count
        self._drawn = 0
        self._stream = Stream(plan.seed)

    def of(self, epoch: int) -> Array:
        """Return the order in an epoch. One random stream yields all orders, so the orders of earlier epochs are drawn first."""
        if not self.plan.shuffle:
            return np.arange(self.count)
        if epoch < self._drawn:
            self._drawn, self._stream = 0, Stream(self.plan.seed)
        for _ in range(self._drawn, epoch):
            self._stream.permutation(self.count)
        self._drawn = epoch + 1
        order: Array = self._stream.permutation(self.count)
        return order


@dataclass(frozen=True, eq=False)
class _OrderedBatches:
    """Base class of batches of samples whose number is known in advance."""

    inputs: ProgramInputs
    orders: EpochOrders

    @property
    def plan(self) -> BatchSchedule:
        return self.orders.plan

    @property
    def samples(self) -> int:
        return self.orders.count

    @property
    def batches(self) -> int:
        return len(self.plan.parts(self.samples))

    @property
    def dropped(self) -> int:
        return self.samples - self.plan.used(self.samples)


@dataclass(frozen=True, eq=False)
class ArrayBatches(_OrderedBatches):
    """Batches of arrays in memory; see :class:`TrainingData`."""

    data: Mapping[str, InputValues]
    labels: Array

    @property
    def digest(self) -> str:
        return digest_of_labels(self.labels)

    @property
    def agreed(self) -> object:
        return {id_: array.shape for id_, array in self.data.items()}

    def remaining(self, epoch: int, done: int, seen: str) -> tuple[list[int], Generator[Batch]]:
        order, parts = self.orders.of(epoch), self.plan.parts(self.samples)
        return [part.stop - part.start for part in parts[:done]], (self._batch(order[part]) for part in parts[done:])

    def _batch(self, chosen: Array) -> Batch:
        def samples_at(which: Array) -> BatchSamples:
            samples = chosen[which]
            return self.inputs.batch_of(self.data, samples), as_targets(self.labels[samples])

        return Batch(len(chosen), samples_at)


@dataclass(frozen=True, eq=False)
class DataSetBatches(_OrderedBatches):
    """Batches of a data set, in the same order as in :class:`ArrayBatches`; see :class:`TrainingData`."""

    data: BatchedData
    labels: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def digest(self) -> str:
        return fingerprint_of(self.data)

    @property
    def agreed(self) -> object:
        return self.samples, self.digest

    def remaining(self, epoch: int, done: int, seen: str) -> tuple[list[int], Generator[Batch]]:
        """See :class:`TrainingData`; only the remaining samples are read."""
        sizes = [part.stop - part.start for part in self.plan.parts(self.samples)]
        order = self.orders.of(epoch)[sum(sizes[:done]) : self.plan.used(self.samples)]
        return sizes[:done], self._read(order, epoch, sizes[done:])

    def _read(self, order: Array, epoch: int, sizes: list[int]) -> Generator[Batch]:
        """Yield the batches of the samples `order`; raise an error if their sizes differ from `sizes`."""
        number = 0
        for number, (inputs, targets) in enumerate(self.data.batches(self.plan.batch, order=order, epoch=epoch), 1):
            batch = batch_in_memory(self.inputs, *self.inputs.labelled_batch(inputs, targets), time_first=True)
            if number > len(sizes) or batch.count != sizes[number - 1]:
                wanted = f"{sizes[number - 1]} samples were requested" if number <= len(sizes) else f"{len(sizes)} batches were requested"
                raise BatchesError(f"batch {number} of the {type(self.data).__name__} has {batch.count} samples, but {wanted}.")
            yield batch
        if number != len(sizes):
            raise BatchesError(f"the {type(self.data).__name__} yielded {number} batches in epoch {epoch + 1}, not {len(sizes)}.")


class StreamBatches:
    """Batches ``(x, y)`` in the order of the stream; see :class:`TrainingData`.

    Each epoch iterates over the stream, which determines batch sizes and order; `size` is the number of samples that each batch must have,
    None for any number. A resumed training run iterates the interrupted epoch again and skips the batches that have been trained. It
    compares their labels, so it detects a stream that does not repeat them.
    """

    # Unknown before the stream has been read.
    samples = 0
    digest = ""
    agreed = None

    def __init__(self, inputs: ProgramInputs, stream: Iterable[Any], plan: BatchSchedule, size: int | None) -> None:
        if isinstance(stream, Iterator) and plan.epochs > 1:
            raise BatchesError(
                f"epochs is {plan.epochs}, but a {type(stream).__name__} yields its batches once; give an iterable that can be repeated, "
                "such as a DataLoader or a list, or call fit with epochs=1 and a new iterator for each epoch."
            )
        self.inputs = inputs
        self.plan = plan
        self.labels: Array = np.zeros(0, np.int64)
        self.dropped = 0
        self.size = size
        self._stream = stream

    @property
    def batches(self) -> int:
        return len(self._stream) if isinstance(self._stream, Sized) else 0

    def remaining(self, epoch: int, done: int, seen: str) -> tuple[list[int], Generator[Batch]]:
        self.dropped = 0
        follows = self._checked(epoch)
        passed = [batch for _, batch in zip(range(done), follows, strict=False)]
        if done and (len(passed) < done or passed[-1].seen != seen):
            raise ResumeError(
                f"the {type(self._stream).__name__} does not repeat the {done} batches of epoch {epoch + 1} of the stopped training run: "
                "give an iterable that yields the same batches each time, or a data set, whose order follows from a seed."
            )
        return [batch.count for batch in passed], follows

    def _checked(self, epoch: int) -> Generator[Batch]:
        """Yield the batches of an epoch, checked; skip the last one if it does not fill the batch of the program."""
        size, number, seen = self.size, 0, hashlib.sha256()
        for number, pair in enumerate(self._stream, 1):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                kind = f"a {type(pair).__name__}"
                what = f"{kind} of {len(pair)} items" if isinstance(pair, tuple | list) else kind
                raise BatchesError(f"batch {number} is {what}; a batch is a pair (x, y) of samples and labels.")
            data, labels = self.inputs.labelled(*pair)
            if self.dropped or (size is not None and len(labels) != size):
                self._leave_out(number, len(labels))
                continue
            seen.update(np.ascontiguousarray(as_targets(labels)).tobytes() + b";")
            yield replace(batch_in_memory(self.inputs, data, labels, time_first=False), seen=seen.hexdigest())
        if number == 0 or (number == 1 and self.dropped):
            raise BatchesError(self._no_batch(epoch))

    def _leave_out(self, number: int, count: int) -> None:
        """Skip the last batch of an epoch if it is too small for the program; raise an error for any other batch of the wrong size."""
        size = self.size or 0
        if self.dropped or count > size:
            wrong, at = (self.dropped, number - 1) if self.dropped else (count, number)
            raise BatchSizeError(
                f"batch {at} has {wrong} samples, but the network was compiled for {size}; only the last batch may be smaller "
                f"(and is skipped). Give batches of {size} samples, or compile again with batch=…."
            )
        self.dropped = count

    def _no_batch(self, epoch: int) -> str:
        if self.dropped:
            return f"the only batch has {self.dropped} samples, but the network was compiled for {self.size}; compile for a smaller batch."
        epoch -= self.plan.first_epoch
        again = "" if epoch == 0 else ", after some in the previous epoch: it cannot be iterated again"
        return f"the {type(self._stream).__name__} yielded no batch in epoch {epoch + 1}{again}. It is empty, or an exhausted iterator."


def batch_in_memory(inputs: ProgramInputs, data: Mapping[str, InputValues], labels: Array, time_first: bool) -> Batch:
    """Return a batch of samples in memory: [T, B, *shape] if `time_first`, else [B, T, *shape]."""

    def samples_at(which: Array) -> BatchSamples:
        samples = inputs.part_of(data, which) if time_first else inputs.batch_of(data, which)
        return samples, as_targets(labels[which])

    return Batch(len(labels), samples_at)


def fingerprint_of(data: BatchedData) -> str:
    """Return a digest of a data set's number of samples and, if it has one, its ``fingerprint``."""
    fingerprint = getattr(data, "fingerprint", "")
    return hashlib.sha256(f"{len(data)} {fingerprint}".encode()).hexdigest()
