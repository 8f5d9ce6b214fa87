"""Logs of training: a CSV file with one row per epoch, and TensorBoard event files."""

from __future__ import annotations

import csv
import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from snnc.backends.runtime.errors import SessionError
from snnc.backends.runtime.history import Epoch, TrainingProgress, Validation
from snnc.backends.training.validation.metrics import scalars
from snnc.compiler.errors import ToolMissingError
from snnc.compiler.files.durable import write_durably

_COLUMNS: Final = ("epoch", "updates", "seconds", "learning_rate", "loss")


class LogError(SessionError, code="SNNC-E592"):
    """A log of a training run cannot be written, or an existing file is not the log of this run."""


class TrainingLog:
    """Base class of logs, which ignores everything."""

    def after_batch(self, progress: TrainingProgress) -> None:
        """Log an update."""

    def after_epoch(self, epoch: Epoch) -> None:
        """Log an epoch."""

    def close(self) -> None:
        """Close the files."""


class CsvLog(TrainingLog):
    """A CSV file: epoch, updates, seconds, learning_rate, loss, and the loss, accuracy and metrics of the validation.

    If training is `resumed` after `epochs` epochs, their rows are kept; otherwise the first row replaces an existing file.
    """

    def __init__(self, path: str | os.PathLike[str], epochs: int, resumed: bool) -> None:
        self.path = Path(path)
        self._rows = self._earlier_rows(epochs) if resumed and self.path.exists() else []

    def after_epoch(self, epoch: Epoch) -> None:
        """Add a row; the file is replaced as a whole, so that an interruption leaves no incomplete row."""
        row: dict[str, object] = {
            "epoch": epoch.number + 1,
            "updates": epoch.updates,
            "seconds": f"{epoch.seconds:.3f}",
            "learning_rate": repr(epoch.learning_rate),
            "loss": repr(epoch.loss),
        }
        if epoch.validation is not None:
            row |= {f"validation_{name}": repr(value) for name, value in _results(epoch.validation).items()}
        self._rows.append({name: str(value) for name, value in row.items()})
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self._rows[-1]), restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        try:
            write_durably(self.path, text.getvalue().encode(), self.path.with_name(f".{self.path.name}.part"))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise LogError(
                f"the log {str(self.path)!r} cannot be written: {reason}; the checkpoint of this epoch was not written."
            ) from None

    def _earlier_rows(self, epochs: int) -> list[dict[str, str]]:
        try:
            with self.path.open(newline="", encoding="utf-8") as stream:
                reader = csv.DictReader(stream)
                if tuple(reader.fieldnames or ())[: len(_COLUMNS)] != _COLUMNS:
                    raise LogError(f"{str(self.path)!r} is not the log of a training run; choose another file, or delete this one.")
                return [{k: v for k, v in row.items() if k is not None} for row in reader if int(row["epoch"]) <= epochs]
        except (OSError, ValueError, TypeError, csv.Error) as error:
            raise LogError(f"the log {str(self.path)!r} of the resumed training run cannot be read: {error}.") from None


class TensorBoardLog(TrainingLog):
    """Event files for TensorBoard: loss and learning rate of each update; loss and validation results of each epoch.

    If training is `resumed` after `updates` updates, entries of later updates are discarded. Raises a ToolMissingError if no writer of
    event files is installed, and a LogError if the folder cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str], updates: int, resumed: bool) -> None:
        self._writer = _writer(Path(folder), updates if resumed else None)

    def after_batch(self, progress: TrainingProgress) -> None:
        self._writer.add_scalar("training/loss", progress.loss, progress.update)
        self._writer.add_scalar("training/learning_rate", progress.learning_rate, progress.update)

    def after_epoch(self, epoch: Epoch) -> None:
        self._writer.add_scalar("training/epoch_loss", epoch.loss, epoch.updates - 1)
        if epoch.validation is not None:
            for name, value in _results(epoch.validation).items():
                self._writer.add_scalar(f"validation/{name}", value, epoch.updates - 1)
        self._writer.flush()

    def close(self) -> None:
        with suppress(OSError):
            self._writer.close()


def _results(validation: Validation) -> dict[str, float]:
    """Return loss, accuracy and all metrics that are numbers or one number per class."""
    return {"loss": validation.loss, "accuracy": validation.accuracy, **scalars(validation.metrics)}


def _writer(folder: Path, purge_step: int | None) -> Any:
    """Open event files with the first installed package that can write them; entries from update `purge_step` on are discarded."""
    for module in ("torch.utils.tensorboard", "tensorboardX"):
        try:
            package = __import__(module, fromlist=["SummaryWriter"])
        except ImportError:
            continue
        try:
            return package.SummaryWriter(str(folder), purge_step=purge_step)
        except OSError as error:
            raise LogError(f"the folder {str(folder)!r} of the TensorBoard log cannot be written: {error}.") from None
    raise ToolMissingError(
        "tensorboard= needs a writer of TensorBoard files, but none is installed; pip install tensorboardX, or torch and tensorboard."
    )
