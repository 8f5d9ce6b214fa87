"""Results of a training run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Validation:
    """Loss and metrics on data that the network is not trained on."""

    loss: float
    """Mean over the samples; NaN without a loss."""
    accuracy: float
    """Share of samples whose class is predicted; NaN if the targets are not classes."""
    metrics: Mapping[str, float | npt.NDArray[np.floating]] = field(default_factory=dict)
    """The other metrics by name: numbers, or arrays (``"confusion"`` [class, predicted class])."""

    @property
    def text(self) -> str:
        """One line with the loss, the accuracy and all metrics that are numbers."""
        accuracy = "" if math.isnan(self.accuracy) else f", accuracy {100 * self.accuracy:.1f} %"
        others = "".join(f", {name} {value:.4g}" for name, value in self.metrics.items() if isinstance(value, int | float))
        return f"validation loss {self.loss:.4f}{accuracy}{others}"


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a training run, passed to its callback after each batch."""

    epoch: int
    """Number of the epoch in this call, from 0."""
    epochs: int
    """Number of epochs of this call."""
    batch: int
    """Number of the batch in its epoch, from 0."""
    batches: int
    """Number of batches in an epoch; for a stream of unknown length, the number so far."""
    loss: float
    """Loss of this batch."""
    update: int = 0
    """Number of updates before this one, including those of earlier runs, unless the data are a stream of unknown length."""
    learning_rate: float = math.nan
    """Learning rate of this update."""


@dataclass(frozen=True)
class Epoch:
    """A finished epoch."""

    number: int
    """Number of the epoch from 0, including the ``first_epoch`` epochs of earlier runs."""
    until: int
    """Number of epochs after which training ends, including those of earlier runs."""
    loss: float
    """Mean loss over the samples."""
    seconds: float
    """Duration of the epoch in this run, without the validation."""
    validation: Validation | None = None
    """Results on the validation data; None without such data."""
    learning_rate: float = math.nan
    """Learning rate of the last update."""
    updates: int = 0
    """Number of updates so far; earlier runs count as in :attr:`TrainingProgress.update`."""

    @property
    def text(self) -> str:
        """One line with number, losses, accuracy and duration."""
        validated = "" if self.validation is None else f", {self.validation.text}"
        return f"epoch {self.number + 1}: loss {self.loss:.4f}{validated}, {self.seconds:.1f} s"


@dataclass
class History:
    """Results of a training run, for each epoch that ended in it."""

    losses: list[float] = field(default_factory=list)
    """Mean loss of the samples of each epoch."""
    batch_losses: list[list[float]] = field(default_factory=list)
    """Loss of each batch of each epoch."""
    seconds: list[float] = field(default_factory=list)
    """Duration of each epoch in seconds."""
    validation: list[Validation] = field(default_factory=list)
    """Results on the validation data after each epoch; empty without such data."""
    best_epoch: int | None = None
    """``Epoch.number`` of the epoch with the best validation so far; None without validation data, or if all results are NaN."""
    stopped_early: bool = False
    """Whether training ended before its last epoch because the validation result stopped improving."""
    dropped: int = 0
    """Number of samples that an epoch skipped because they did not fill a batch; with shuffling, each epoch skips different ones."""
    skipped_updates: int = 0
    """Number of updates that loss scaling skipped because a gradient was not finite."""

    @property
    def note(self) -> str:
        """Sentences about skipped samples and updates; empty if none were skipped."""
        sentences = []
        if self.dropped:
            sentences.append(f"{self.dropped} samples of each epoch were skipped: they do not fill the compiled batch.")
        if self.skipped_updates:
            sentences.append(f"{self.skipped_updates} updates were skipped: their gradients, times the loss scale, were not all finite.")
        return " ".join(sentences)
