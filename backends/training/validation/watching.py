"""Validation, early stopping, best weights and logs of a training run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from snnc.backends.runtime.errors import TrainingOptionError
from snnc.backends.training.saving.checkpoint import Checkpoints, Position
from snnc.backends.training.updates.ranks import leads
from snnc.backends.training.validation.logs import CsvLog, TensorBoardLog, TrainingLog
from snnc.backends.training.validation.metrics import MetricError
from snnc.backends.training.validation.stopping import Stopping
from snnc.backends.training.validation.validating import ValidationData


@dataclass(frozen=True)
class Watching:
    """The arguments of ``fit`` for validation and logs."""

    validation: ValidationData | None
    stopping: Stopping  # rule for the best epoch and for early stopping
    best: Path | None  # file of the best weights
    restore_best: bool
    log: str | os.PathLike[str] | None
    tensorboard: str | os.PathLike[str] | None
    of_classes: bool  # whether the targets are one class per sample, so that accuracy is defined

    @property
    def text(self) -> str:
        """The settings that must not change when training is resumed."""
        if self.validation is None:
            return ""
        rule = self.stopping
        ends = f"patience {rule.patience}, min_delta {rule.min_delta:g}, restore_best {self.restore_best}"
        return f"{self.validation.samples.text}, monitor {rule.monitor}, {ends}"

    def check(self, metrics: object, checkpoints: Checkpoints | None) -> None:
        """Raise an error for arguments that have no effect or contradict each other.

        The error is a MetricError if metrics were given without validation data, and a TrainingOptionError if another argument needs
        validation data, classes as targets, or `patience`; if `best` and `checkpoints` are the same file; or if the best weights would be
        lost when the process is killed.
        """
        if self.validation is None:
            if metrics:
                raise MetricError("metrics need validation data; give validation=(x, y).")
            wanted = {
                "patience": self.stopping.patience is not None,
                "min_delta": self.stopping.min_delta != 0,
                "monitor": self.stopping.monitor != "loss",
                "best": self.best is not None,
                "restore_best": self.restore_best,
            }
            for name in (name for name, is_set in wanted.items() if is_set):
                raise TrainingOptionError(f"{name} needs validation data; give validation=(x, y).")
        elif self.stopping.monitor == "accuracy" and not self.of_classes:
            raise TrainingOptionError("monitor is 'accuracy', but the targets are not one class per sample; monitor the 'loss'.")
        if self.stopping.min_delta != 0 and self.stopping.patience is None:
            raise TrainingOptionError("min_delta has no effect without patience; give both, or omit it.")
        if self.best is not None and checkpoints is not None and self.best.absolute() == Path(checkpoints.path).absolute():
            raise TrainingOptionError(f"best and checkpoints are the same file, {str(self.best)!r}; give two files.")
        if self.restore_best and self.best is None and checkpoints is not None:
            raise TrainingOptionError("restore_best with checkpoints needs a file that survives an interruption; give best=….")

    def logs(self, begin: Position) -> list[TrainingLog]:
        """Open the logs of a training run that starts or resumes at `begin`; of several processes, only rank 0 writes logs."""
        resumed = begin.epoch > begin.recipe.first_epoch or begin.batch > 0
        logs: list[TrainingLog] = []
        if self.log is not None and leads():
            logs.append(CsvLog(self.log, begin.epoch, resumed))
        if self.tensorboard is not None and leads():
            logs.append(TensorBoardLog(self.tensorboard, begin.updates, resumed))
        return logs
