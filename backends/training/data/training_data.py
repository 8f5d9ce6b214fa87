"""Selection of the source of training batches: arrays, a data set, or a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy.typing as npt

from snnc.backends.runtime.errors import BatchesError, LabelsMissingError, TrainingOptionError
from snnc.backends.runtime.events import Events
from snnc.backends.runtime.inputs import BatchedData, Inputs, ProgramInputs
from snnc.backends.training.data.batches import ArrayBatches, DataSetBatches, EpochOrders, StreamBatches, TrainingData
from snnc.backends.training.plan import BatchSchedule, batch_size

Trained: TypeAlias = Inputs | BatchedData | Iterable[Any]
"""What ``fit`` trains on: samples, a data set, or batches."""
Validated: TypeAlias = tuple[Inputs, npt.ArrayLike] | BatchedData
"""What ``fit`` validates on: samples and labels, or a data set."""


def training_data(inputs: ProgramInputs, x: Trained, y: npt.ArrayLike | None, schedule: BatchSchedule, batch: int | None) -> TrainingData:
    """Return the batches of a training run; `x`, `y` and `batch` are those of :meth:`snnc.backends.session.BackendSession.fit`.

    Raises a LabelsMissingError if samples have no labels, or labels were given for a data set or for batches, which contain their own; a
    BatchesError if the data set is empty; a TrainingOptionError if a batch size is given for batches; and other SessionErrors if the data
    do not fit the network.
    """
    engine = inputs.engine

    def orders(count: int) -> EpochOrders:
        size = batch_size(engine, count, batch, schedule.accumulate)
        return EpochOrders(replace(schedule, batch=size, full_batches_only=engine.batch is not None), count)

    if isinstance(x, BatchedData):
        if y is not None:
            raise LabelsMissingError(f"y is given, but a {type(x).__name__} contains its own targets; omit y.")
        if len(x) == 0:
            raise BatchesError("the data set has no samples.")
        return DataSetBatches(inputs, orders(len(x)), x)
    if _is_stream(x, y):
        if y is not None:
            raise LabelsMissingError(
                f"y is given, but a {type(x).__name__} yields batches (x, y), which contain their labels; omit y, or give x as an array."
            )
        if batch is not None:
            raise TrainingOptionError(f"batch is {batch}, but x already yields batches; omit batch, or set it where the batches are made.")
        size = None if engine.batch is None else engine.batch * schedule.accumulate
        return StreamBatches(inputs, cast("Iterable[Any]", x), replace(schedule, shuffle=False, seed=0), size)
    if y is None:
        raise LabelsMissingError("y is missing: give fit(x, y), or batches (pairs (x, y)) from a DataLoader, a list or a generator.")
    data, labels = inputs.labelled(cast("Inputs", x), y)
    return ArrayBatches(inputs, orders(len(labels)), data, labels)


def _is_stream(x: object, y: object) -> bool:
    """Return whether `x` is an iterable of batches rather than samples: an iterator, a DataLoader, or a list without labels `y`."""
    if isinstance(x, Mapping | Events | str | bytes) or hasattr(x, "__array__") or not isinstance(x, Iterable):
        return False
    return y is None or not isinstance(x, list | tuple)
