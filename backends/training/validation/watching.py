"""Validation, early stopping, best weights and logs of a training run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from snnc.backends.runtime.errors import TrainingOptionError
from snnc.backends.runtime.history import Epoch, TrainingProgress, Validation
from snnc.backends.training.saving.checkpoint import Checkpoints, Position
from snnc.backends.training.updates.ranks import leads
from snnc.backends.training.validation.logs import CsvLog, TensorBoardLog
from snnc.backends.training.validation.metrics import MetricError
from snnc.backends.training.validation.stopping import Stopping


@dataclass(frozen=True)
class Logs:
    """The logs of a training run, none or several."""

    csv: CsvLog | None = None
    tensorboard: TensorBoardLog | None = None

    def after_batch(self, progress: TrainingProgress) -> None:
        """Log an update."""
        if self.tensorboard is not None:
            self.tensorboard.after_batch(progress)

    def after_epoch(self, epoch: Epoch) -> None:
        """Log an epoch."""
        if self.csv is not None:
            self.csv.after_epoch(epoch)
        if self.tensorboard is not None:
            self.tensorboard.after_epoch(epoch)

    def close(self) -> None:
        """Close the files."""
        if self.tensorboard is not None:
            self.tensorboard.close()


@dataclass(frozen=True)
class Watching:
    """The arguments of ``fit`` for validation and logs.

    Attributes
    ----------
    validate
        Measures the network on the validation data; None: there are none.
    about
        The validation data and metrics in words, for checkpoints.
    stopping
        The best epoch, and when to stop.
    best, restore_best
        File of the best weights, and whether they are set again at the end.
    log, tensorboard
        A CSV file, and a folder of TensorBoard's event files.
    of_classes
        Whether the targets are classes of samples, so that there is an accuracy.
    """

    validate: Callable[[], Validation] | None = None
    about: str = ""
    stopping: Stopping = field(default_factory=Stopping)
    best: Path | None = None
    restore_best: bool = False
    log: str | os.PathLike[str] | None = None
    tensorboard: str | os.PathLike[str] | None = None
    of_classes: bool = True

    @property
    def text(self) -> str:
        """The settings that must be the same when a stopped training is resumed."""
        if self.validate is None:
            return ""
        rule = self.stopping
        ends = f"patience {rule.patience}, min_delta {rule.min_delta:g}, restore_best {self.restore_best}"
        return f"{self.about}, monitor {rule.monitor}, {ends}"

    def check(self, metrics: object, checkpoints: Checkpoints | None) -> None:
        """Refuse arguments that have no effect.

        Raises
        ------
        MetricError
            There are metrics, and no validation data.
        TrainingOptionError
            Another argument needs them; or the best weights would be lost when the training is killed.
        """
        if self.validate is None:
            if metrics:
                raise MetricError("metrics are measured on validation data, and there are none; give validation=(x, y).")
            wanted = {
                "patience": self.stopping.patience is not None,
                "min_delta": self.stopping.min_delta != 0,
                "monitor": self.stopping.monitor != "loss",
                "best": self.best is not None,
                "restore_best": self.restore_best,
            }
            for name in (name for name, given in wanted.items() if given):
                raise TrainingOptionError(f"{name} follows the validation, but there are no validation data; give validation=(x, y).")
        elif self.stopping.monitor == "accuracy" and not self.of_classes:
            raise TrainingOptionError("monitor is 'accuracy', but the loss compares with no classes of samples; monitor the 'loss'.")
        if self.stopping.min_delta != 0 and self.stopping.patience is None:
            raise TrainingOptionError("min_delta has no effect without patience; give both, or leave it out.")
        if self.best is not None and checkpoints is not None and self.best.absolute() == Path(checkpoints.path).absolute():
            raise TrainingOptionError(f"best and checkpoints are one file, {str(self.best)!r}; give two.")
        if self.restore_best and self.best is None and checkpoints is not None:
            raise TrainingOptionError("restore_best with checkpoints needs a file that survives an interruption; give best=….")

    def logs(self, begin: Position) -> Logs:
        """Open the logs of a training run that begins, or goes on, at a position; only the first of several processes has any."""
        if not leads():
            return Logs()
        resumed = begin.epoch > begin.recipe.first_epoch or begin.batch > 0
        updates = begin.epoch * begin.batches + begin.batch
        return Logs(
            None if self.log is None else CsvLog(self.log, begin.epoch, resumed),
            None if self.tensorboard is None else TensorBoardLog(self.tensorboard, updates, resumed),
        )
