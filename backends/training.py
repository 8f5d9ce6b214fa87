"""The loop over epochs and batches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from snnc.backends.engine import Array, Engine
from snnc.backends.errors import BatchSizeError, TrainingOptionError
from snnc.backends.history import History, Progress
from snnc.compiler.optimizers import Optimizer


@dataclass(frozen=True)
class Schedule:
    """How samples become batches."""

    epochs: int
    batch: int
    full_batches_only: bool
    shuffle: bool
    seed: int
    first_epoch: int = 0
    """Epochs made before, whose orders are drawn and left."""

    def __post_init__(self) -> None:
        if self.first_epoch < 0:
            raise TrainingOptionError(f"first_epoch is {self.first_epoch}; epochs count from 0.")
        if self.epochs < 1:
            raise TrainingOptionError(f"epochs is {self.epochs}; train for at least 1.")


def batch_size(engine: Engine, count: int, wanted: int | None) -> int:
    """Return the samples of one update.

    Raises
    ------
    BatchSizeError
        The engine takes another number, or there are fewer samples.
    """
    if wanted is not None and wanted < 1:
        raise TrainingOptionError(f"batch is {wanted}; an update needs at least 1 sample.")
    if engine.batch is None:
        return min(count, wanted or 64)
    if wanted not in (None, engine.batch):
        raise BatchSizeError(f"batch is {wanted}, but the network was compiled for {engine.batch}; leave it out or compile again.")
    if count < engine.batch:
        raise BatchSizeError(f"{count} samples do not fill one batch of {engine.batch}; give more, or compile for a smaller batch.")
    return engine.batch


def learning_rate(optimizer: Optimizer, wanted: float | Callable[[int], float] | None) -> Callable[[int], float]:
    """Return the learning rate as a function of the epoch."""

    def rate(epoch: int) -> float:
        value = float(wanted(epoch) if callable(wanted) else optimizer.lr if wanted is None else wanted)
        if not (math.isfinite(value) and value >= 0):
            raise TrainingOptionError(f"the learning rate of epoch {epoch} is {value}; it is a number of 0 or more.")
        return value

    return rate


def train(
    plan: Schedule,
    count: int,
    step: Callable[[Array, int, Array | None], float],
    callback: Callable[[Progress], None] | None,
) -> History:
    """Call ``step(indices, epoch, following)`` for every batch of every epoch, with the indices of the batch that follows (None: none)."""
    used = count - count % plan.batch if plan.full_batches_only else count
    history = History(dropped=count - used)
    starts = range(0, used, plan.batch)
    batches = _batches(plan, count, [slice(at, min(at + plan.batch, used)) for at in starts])
    following = next(batches, None)
    for epoch in range(plan.first_epoch, plan.first_epoch + plan.epochs):
        began = time.perf_counter()
        losses, sizes = [], []
        for number in range(len(starts)):
            chosen, following = following, next(batches, None)
            assert chosen is not None, "there are as many batches as epochs have"
            losses.append(step(chosen, epoch, following))
            sizes.append(len(chosen))
            if callback is not None:
                callback(Progress(epoch - plan.first_epoch, plan.epochs, number, len(starts), losses[-1]))
        history.batch_losses.append(losses)
        history.losses.append(float(np.average(losses, weights=sizes)))
        history.seconds.append(time.perf_counter() - began)
    return history


def _batches(plan: Schedule, count: int, parts: Sequence[slice]) -> Iterator[Array]:
    """Indices of every batch of every epoch."""
    generator = np.random.default_rng(plan.seed)
    for _ in range(plan.first_epoch if plan.shuffle else 0):
        generator.permutation(count)
    for _ in range(plan.epochs):
        order = generator.permutation(count) if plan.shuffle else np.arange(count)
        yield from (order[part] for part in parts)
