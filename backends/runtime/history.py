"""The record of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a training run, passed to its callback after each batch."""

    epoch: int
    """Counted from 0 in this call, whatever its first epoch."""
    epochs: int
    batch: int
    batches: int
    loss: float
    """Of this batch."""


@dataclass(frozen=True)
class Epoch:
    """A finished epoch."""

    number: int
    """Counted from 0, including the ``first_epoch`` epochs of earlier runs."""
    until: int
    """The number at which the training ends."""
    loss: float
    """Mean over the samples."""
    seconds: float
    """Duration in this run."""


@dataclass
class History:
    """Losses of a training run, for the epochs that ended in it."""

    losses: list[float] = field(default_factory=list)
    """Mean over the samples of each epoch."""
    batch_losses: list[list[float]] = field(default_factory=list)
    """Of each batch of each epoch."""
    seconds: list[float] = field(default_factory=list)
    """Duration of each epoch."""
    dropped: int = 0
    """Samples that each epoch skipped because they did not fill a batch; with shuffling, different ones each time."""

    @property
    def note(self) -> str:
        """A sentence about skipped samples, or nothing."""
        if not self.dropped:
            return ""
        return f"{self.dropped} samples of each epoch were left out: they do not fill the batch that the network was compiled for."
