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
    """The logs of a training run."""

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
        Function that evaluates the network on the validation data; None: no validation data.
    about
        Text that identifies the validation data and metrics in checkpoints.
    stopping
        Rule for the best epoch and for early stopping.
    best, restore_best
        File of the best weights, and whether they are restored at the end.
    log, tensorboard
        CSV file, and folder of TensorBoard event files.
    of_classes
        Whether the targets are one class per sample, so that accuracy is defined.
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
        """The settings that must not change when training is resumed."""
        if self.validate is None:
            return ""
        rule = self.stopping
        ends = f"patience {rule.patience}, min_delta {rule.min_delta:g}, restore_best {self.restore_best}"
        return f"{self.about}, monitor {rule.monitor}, {ends}"

    def check(self, metrics: object, checkpoints: Checkpoints | None) -> None:
        """Raise an error for arguments that have no effect or contradict each other.

        Raises
        ------
        MetricError
            Metrics were given without validation data.
        TrainingOptionError
            Another argument needs validation data, classes as targets, or `patience`; `best` and `checkpoints` are the same file; or the
            best weights would be lost if the process is killed.
        """
        if self.validate is None:
            if metrics:
                raise MetricError("metrics need validation data; give validation=(x, y).")
            wanted = {
                "patience": self.stopping.patience is not None,
                "min_delta": self.stopping.min_delta != 0,
                "monitor": self.stopping.monitor != "loss",
                "best": self.best is not None,
                "restore_best": self.restore_best,
            }
            for name in (name for name, given in wanted.items() if given):
                raise TrainingOptionError(f"{name} needs validation data; give validation=(x, y).")
        elif self.stopping.monitor == "accuracy" and not self.of_classes:
            raise TrainingOptionError("monitor is 'accuracy', but the targets are not one class per sample; monitor the 'loss'.")
        if self.stopping.min_delta != 0 and self.stopping.patience is None:
            raise TrainingOptionError("min_delta has no effect without patience; give both, or omit it.")
        if self.best is not None and checkpoints is not None and self.best.absolute() == Path(checkpoints.path).absolute():
            raise TrainingOptionError(f"best and checkpoints are the same file, {str(self.best)!r}; give two files.")
        if self.restore_best and self.best is None and checkpoints is not None:
            raise TrainingOptionError("restore_best with checkpoints needs a file that survives an interruption; give best=….")

    def logs(self, begin: Position) -> Logs:
        """Open the logs of a training run that starts or resumes at `begin`; of several processes, only rank 0 writes logs."""
        if not leads():
            return Logs()
        resumed = begin.epoch > begin.recipe.first_epoch or begin.batch > 0
        return Logs(
            None if self.log is None else CsvLog(self.log, begin.epoch, resumed),
            None if self.tensorboard is None else TensorBoardLog(self.tensorboard, begin.updates, resumed),
        )
