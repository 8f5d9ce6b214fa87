"""Batches from a DataLoader, a list or a generator, in the given order."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from typing import Any

import numpy as np

from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import BatchesError, BatchSizeError, LabelsMissingError, ResumeError, TrainingOptionError
from snnc.backends.runtime.events import Events
from snnc.backends.runtime.inputs import ProgramInputs
from snnc.backends.runtime.targets import as_targets
from snnc.backends.training.data.batches import Batch, batch_in_memory
from snnc.backends.training.plan import BatchSchedule


class StreamBatches:
    """Batches ``(x, y)`` in the order of the stream; see :class:`~snnc.backends.training.data.batches.TrainingData`.

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
        """Number of batches that the stream reports; 0: unknown."""
        return len(self._stream) if isinstance(self._stream, Sized) else 0

    def remaining(self, epoch: int, done: int, seen: str) -> tuple[list[int], Generator[Batch]]:
        """See :class:`~snnc.backends.training.data.batches.TrainingData`."""
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
        """Return the message about an epoch without a batch."""
        if self.dropped:
            return f"the only batch has {self.dropped} samples, but the network was compiled for {self.size}; compile for a smaller batch."
        epoch -= self.plan.first_epoch
        again = "" if epoch == 0 else ", after some in the previous epoch: it cannot be iterated again"
        return f"the {type(self._stream).__name__} yielded no batch in epoch {epoch + 1}{again}. It is empty, or an exhausted iterator."


def is_stream(x: object, y: object) -> bool:
    """Return whether `x` is an iterable of batches rather than samples: an iterator, a DataLoader, or a list without labels `y`."""
    if isinstance(x, Mapping | Events | str | bytes) or hasattr(x, "__array__") or not isinstance(x, Iterable):
        return False
    return y is None or not isinstance(x, list | tuple)


def check_stream(x: object, y: object, batch: int | None) -> None:
    """Raise an error for arguments that cannot be combined with batches.

    The error is a LabelsMissingError if `x` contains samples without labels, or `y` is given with batches, and a TrainingOptionError if a
    batch size is given.
    """
    if not is_stream(x, y):
        raise LabelsMissingError("y is missing: give fit(x, y), or batches (pairs (x, y)) from a DataLoader, a list or a generator.")
    if y is not None:
        raise LabelsMissingError(
            f"y is given, but a {type(x).__name__} yields batches (x, y), which contain their labels; omit y, or give x as an array."
        )
    if batch is not None:
        raise TrainingOptionError(f"batch is {batch}, but x already yields batches; omit batch, or set it where the batches are made.")
