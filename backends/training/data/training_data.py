"""Selection of the source of training batches: arrays, a data set, or a stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy.typing as npt

from snnc.backends.runtime.data_sets import BatchedData
from snnc.backends.runtime.errors import BatchesError, LabelsMissingError
from snnc.backends.runtime.inputs import Inputs, ProgramInputs
from snnc.backends.training.data.batches import ArrayBatches, DataSetBatches, EpochOrders, TrainingData
from snnc.backends.training.data.streams import StreamBatches, check_stream, is_stream
from snnc.backends.training.plan import BatchSchedule, batch_size, update_size

Trained: TypeAlias = Inputs | BatchedData | Iterable[Any]
"""What ``fit`` trains on: samples, a data set, or batches."""
Validated: TypeAlias = tuple[Inputs, npt.ArrayLike] | BatchedData
"""What ``fit`` validates on: samples and labels, or a data set."""


@dataclass(frozen=True)
class Order:
    """The arguments of ``fit`` for epochs, batches and their order."""

    epochs: int
    first_epoch: int
    batch: int | None
    accumulate: int
    shuffle: bool
    seed: int


def training_data(inputs: ProgramInputs, x: Trained, y: npt.ArrayLike | None, order: Order) -> TrainingData:
    """Return the batches of a training run; see :meth:`snnc.backends.session.BackendSession.fit` for `x` and `y`.

    Raises
    ------
    LabelsMissingError
        Samples have no labels, or labels were given for a data set, which contains its own.
    BatchesError
        The data set is empty.
    SessionError
        The data do not fit the network.
    """
    engine = inputs.engine

    def orders(count: int) -> EpochOrders:
        size = batch_size(engine, count, order.batch, order.accumulate)
        return EpochOrders(BatchSchedule(order.epochs, size, engine.batch is not None, order.shuffle, order.seed, order.first_epoch), count)

    if isinstance(x, BatchedData):
        if y is not None:
            raise LabelsMissingError(f"y is given, but a {type(x).__name__} contains its own targets; omit y.")
        if len(x) == 0:
            raise BatchesError("the data set has no samples.")
        return DataSetBatches(inputs, orders(len(x)), x)
    if y is None or is_stream(x, y):
        check_stream(x, y, order.batch)
        size = None if engine.batch is None else update_size(engine.batch, order.accumulate)
        schedule = BatchSchedule(order.epochs, batch=0, full_batches_only=False, shuffle=False, seed=0, first_epoch=order.first_epoch)
        return StreamBatches(inputs, cast("Iterable[Any]", x), schedule, size)
    data, labels = inputs.labelled(cast("Inputs", x), y)
    return ArrayBatches(inputs, orders(len(labels)), data, labels)
