"""Batches of a training run, taken from arrays or a data set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import BatchesError
from snnc.backends.runtime.events import InputValues
from snnc.backends.runtime.inputs import BatchedData, ProgramInputs
from snnc.backends.runtime.targets import as_targets
from snnc.backends.training.plan import BatchSchedule, check_count
from snnc.compiler.ir.arrays.randomness import Stream

Part: TypeAlias = tuple[dict[str, Array], Array]
"""Inputs by id, [T, B, *shape], and targets [B, ...]."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The samples of an update."""

    count: int
    part: Callable[[Array], Part]
    """Function that returns the samples at given positions in the batch, ready for the engine."""
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
        """The division of the samples into batches."""
        return self.orders.plan

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.orders.count

    @property
    def batches(self) -> int:
        """Number of batches in an epoch."""
        return len(self.plan.parts(self.samples))

    @property
    def dropped(self) -> int:
        """Number of samples that do not fill a batch."""
        return self.samples - self.plan.used(self.samples)


@dataclass(frozen=True, eq=False)
class ArrayBatches(_OrderedBatches):
    """Batches of arrays in memory; see :class:`TrainingData`."""

    data: Mapping[str, InputValues]
    labels: Array

    @property
    def digest(self) -> str:
        """Digest of the labels."""
        return digest_of_labels(self.labels)

    @property
    def agreed(self) -> object:
        """The shapes of the samples."""
        return {id_: array.shape for id_, array in self.data.items()}

    def remaining(self, epoch: int, done: int, seen: str) -> tuple[list[int], Generator[Batch]]:
        """See :class:`TrainingData`."""
        order, parts = self.orders.of(epoch), self.plan.parts(self.samples)
        return [part.stop - part.start for part in parts[:done]], (self._batch(order[part]) for part in parts[done:])

    def _batch(self, chosen: Array) -> Batch:
        def part(which: Array) -> Part:
            samples = chosen[which]
            return self.inputs.batch_of(self.data, samples), as_targets(self.labels[samples])

        return Batch(len(chosen), part)


@dataclass(frozen=True, eq=False)
class DataSetBatches(_OrderedBatches):
    """Batches of a data set, in the same order as in :class:`ArrayBatches`; see :class:`TrainingData`."""

    data: BatchedData
    labels: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def digest(self) -> str:
        """Digest that identifies the data set; see :func:`fingerprint_of`."""
        return fingerprint_of(self.data)

    @property
    def agreed(self) -> object:
        """Number of samples, and digest of the data set."""
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


def batch_in_memory(inputs: ProgramInputs, data: Mapping[str, InputValues], labels: Array, time_first: bool) -> Batch:
    """Return a batch of samples in memory: [T, B, *shape] if `time_first`, else [B, T, *shape]."""

    def part(which: Array) -> Part:
        samples = inputs.part_of(data, which) if time_first else inputs.batch_of(data, which)
        return samples, as_targets(labels[which])

    return Batch(len(labels), part)


def fingerprint_of(data: BatchedData) -> str:
    """Return a digest of a data set's number of samples and, if it has one, its ``fingerprint``."""
    fingerprint = getattr(data, "fingerprint", "")
    return hashlib.sha256(f"{len(data)} {fingerprint}".encode()).hexdigest()
