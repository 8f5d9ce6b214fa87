"""A checkpoint: weights, optimiser state and position of a training run, in one file that is replaced atomically."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.backends.runtime.engine import Array, Engine
from snnc.backends.runtime.errors import CheckpointError, CheckpointIntervalError, ResumeError, WeightFileError
from snnc.backends.runtime.weights import by_name, read_weight_file, weight_file_bytes
from snnc.backends.training.saving import optimizer_values
from snnc.compiler.files.durable import write_durably
from snnc.compiler.ir.step_program import StepProgram

PREFIX: Final = "training:"
"""Prefix of the entries of a training run in a weight file."""
_LOSSES: Final = f"{PREFIX}losses"
_VALIDATED: Final = f"{PREFIX}validated"
_POSITION: Final = "training"
"""Key of the position, as JSON, in the file's metadata."""
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
"""Seconds per unit of a duration."""
EVERY: Final = "5m"
"""Default interval between checkpoints within an epoch."""


@dataclass(frozen=True)
class Checkpoints:
    """File and interval of the checkpoints of a training run.

    Progress is saved at the start, after every epoch, at intervals within an epoch, and when Ctrl-C, SIGTERM or SIGHUP stops training. The
    file is always complete.

    Attributes
    ----------
    path
        A safetensors file, which :meth:`Session.load` can also read.
    every
        Interval between checkpoints within an epoch: a number of seconds, or ``"30s"``, ``"5m"``, ``"1h"``; 0 or ``"none"``: no checkpoints
        within an epoch.
    resume
        Whether to continue from an existing file. The result is exactly the same as without the interruption.
    """

    path: str | os.PathLike[str]
    every: float | str = EVERY
    resume: bool = False

    @property
    def seconds(self) -> float:
        """Number of seconds between two checkpoints within an epoch; infinite if there are none."""
        return seconds_of(self.every)


def seconds_of(duration: float | str) -> float:
    """Return a duration in seconds, infinite for 0 and ``"none"``; any other text raises a CheckpointIntervalError."""
    if isinstance(duration, int | float) and not isinstance(duration, bool) and math.isfinite(duration) and duration >= 0:
        return float(duration) or math.inf
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h|)\s*", str(duration).lower())
    if str(duration).strip().lower() == "none" or (match is not None and float(match[1]) == 0):
        return math.inf
    if match is None:
        raise CheckpointIntervalError(f"{duration!r} is not an interval between checkpoints; give, for example, 30s, 5m, 1h or none.")
    return float(match[1]) * _SECONDS[match[2]]


@dataclass(frozen=True)
class TrainingRecipe:
    """Settings that must not change when a training run is resumed; unrelated to recipe files (``--recipe``)."""

    first_epoch: int
    samples: int
    batch: int
    shuffle: bool
    seed: int
    accumulate: int
    learning_rate: float | str | None
    """A number, or the text of a schedule; None: the optimiser's value, or a function of the number of updates."""
    labels: str
    """SHA-256 of the labels, or of the size and fingerprint of a data set; empty for a stream."""
    watch: str = ""
    """The validation data and their use, as text; empty without validation data."""
    gradient_window: str = ""
    """The gradient window as text; empty: the session's window."""
    capacity: str = ""
    """The capacity as text; empty: the session's capacity."""


@dataclass(frozen=True)
class Position:
    """The position of a training run."""

    recipe: TrainingRecipe
    until: int  # value of `epoch` at which the run ends
    batches: int  # number of batches in an epoch; 0: unknown
    epoch: int  # number of finished epochs
    batch: int = 0  # number of finished batches of the current (unfinished) epoch
    updates: int = 0  # number of finished updates, including those of earlier epochs
    losses: tuple[float, ...] = ()  # losses of the finished batches of the current epoch
    validated: tuple[tuple[float, float], ...] = ()
    """Loss and accuracy on the validation data after each finished epoch of this run; an undefined accuracy is NaN."""
    ended: bool = False  # whether early stopping ended the run
    restored: bool = False  # whether the weights are those of the best epoch instead of the last one
    seen: str = ""  # for a stream: digest of the labels of the finished batches

    @property
    def finished(self) -> bool:
        """Whether the training run is complete."""
        return self.ended or self.epoch >= self.until

    @property
    def of_batches(self) -> str:
        """Text with the number of finished batches of the current epoch."""
        return f"{self.batch} of {self.batches}" if self.batches else f"{self.batch}"

    @property
    def text(self) -> str:
        """Text that describes the position."""
        within = f" and {self.of_batches} batches" if self.batch else ""
        return f"after {self.epoch} of {self.until} epochs{within}"


def save_checkpoint(path: Path, values: Mapping[str, Array], position: Position) -> None:
    """Write a checkpoint, completely or not at all; raise a CheckpointError if it cannot be written."""
    about = {name: value for name, value in asdict(position).items() if name not in ("losses", "validated")}
    rows = {_LOSSES: np.array(position.losses, dtype=np.float64)}
    if position.validated:
        rows[_VALIDATED] = np.array(position.validated, dtype=np.float64)
    data = weight_file_bytes({**values, **rows}, {_POSITION: json.dumps(about)})
    try:
        write_durably(path, data, path.with_name(f".{path.name}.part"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CheckpointError(
            f"the checkpoint {str(path)!r} cannot be written: {reason}. Training stopped {position.text}; the last checkpoint is unchanged."
        ) from None


def read_position(path: Path) -> Position | None:
    """Return the position of a training run, from the file of its weights; None if the file contains no position."""
    entries, metadata = read_weight_file(path)
    return position_in(path, entries, metadata)


def position_in(path: Path, entries: Mapping[str, Array], metadata: Mapping[str, str]) -> Position | None:
    """Return the position from the contents of a file; see :func:`read_position`."""
    if _POSITION not in metadata:
        return None
    try:
        data: dict[str, Any] = json.loads(metadata[_POSITION])
        stored = [f for f in fields(TrainingRecipe) if f.default is MISSING or f.name in data["recipe"]]
        recipe = TrainingRecipe(**{f.name: _typed(data["recipe"][f.name], str(f.type)) for f in stored})
        numbers = {name: _typed(data[name], "int") for name in ("until", "batches", "epoch", "batch")}
        numbers["updates"] = _typed(data.get("updates", numbers["epoch"] * numbers["batches"] + numbers["batch"]), "int")
        flags = {name: _typed(data.get(name, False), "bool") for name in ("ended", "restored")}
        losses = tuple(float(loss) for loss in np.asarray(entries[_LOSSES], dtype=np.float64).reshape(-1))
        if len(losses) != numbers["batch"] or 0 < numbers["batches"] < numbers["batch"] or not np.isfinite(losses).all():
            raise ValueError("the number of losses is not the number of batches")
        validated = _rows(entries.get(_VALIDATED, np.zeros((0, 2))), max(0, numbers["epoch"] - recipe.first_epoch))
        seen = _typed(data.get("seen", ""), "str")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WeightFileError(f"the training record of {path} is damaged ({error}); start a new training run.") from None
    return Position(recipe, **numbers, losses=losses, validated=validated, **flags, seen=seen)


def _rows(array: Array, epochs: int) -> tuple[tuple[float, float], ...]:
    """Return the validation results: one row for each finished epoch, or none."""
    if array.ndim != 2 or array.shape[1] != 2 or len(array) not in (0, epochs):
        raise ValueError("the number of validation losses is not the number of epochs")
    return tuple((float(loss), float(accuracy)) for loss, accuracy in array)


def check_same(stopped: Position, recipe: TrainingRecipe, path: Path) -> None:
    """Raise a ResumeError if the settings or data of a training run with `recipe` differ from those of the `stopped` one."""
    pairs = [(f.name, getattr(stopped.recipe, f.name), getattr(recipe, f.name)) for f in fields(TrainingRecipe)]
    shown, no_text = {"watch": "validation and its use:", "gradient_window": "gradient window"}, {"": "none"}
    texts = [
        "labels or data set" if name == "labels" else f"{shown.get(name, name)} {no_text.get(old, old)}, here {no_text.get(new, new)}"
        for name, old, new in pairs
        if old != new
    ]
    if texts:
        raise ResumeError(
            f"the training run in {path} cannot be resumed with other settings or data: {'; '.join(texts)}. Use the original ones, or "
            "continue from its weights without resume."
        )


def _typed(value: Any, kind: str) -> Any:
    good = {
        "int": isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63,
        "bool": isinstance(value, bool),
        "str": isinstance(value, str),
        "float | str | None": value is None
        or isinstance(value, str)
        or (isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)),
    }
    if not good[kind]:
        raise ValueError(f"{value!r} is not of type {kind}")
    return value


def set_entries(program: StepProgram, engine: Engine, entries: Mapping[str, Array], strict: bool, optimizer: bool | None) -> None:
    """Set parameters and the state of the optimiser from the entries of a file; on an error, nothing changes.

    `strict` and `optimizer`, and the errors of entries that do not fit, are those of :meth:`snnc.backends.session.BackendSession.load`.
    """
    optimizer_entries = {name: value for name, value in entries.items() if name.startswith(optimizer_values.PREFIX)}
    others = (*optimizer_entries, *(name for name in entries if name.startswith(PREFIX)))
    parameters = by_name(program, {name: value for name, value in entries.items() if name not in others}, strict)
    restores_optimizer = bool(optimizer_entries) and program.optimizer is not None if optimizer is None else optimizer
    if restores_optimizer:
        values = optimizer_values.values_from_entries(program, optimizer_entries)
        optimizer_values.resumable(program, engine).set_optimizer(values)
    engine.set_parameters(parameters)
