"""Settings of ``snnc train`` for a project whose last training run was interrupted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from snnc.backends.folders.manifest import TRAINED
from snnc.backends.runtime.errors import UnfinishedTrainingError, WeightFileError
from snnc.backends.training.saving.checkpoint import Position, read_position
from snnc.backends.training.schedules import FUNCTION
from snnc.backends.training.updates.capacities import ScheduledCapacity
from snnc.backends.training.updates.run_values import WindowArgument

SETTINGS: Final = ("epochs", "first_epoch", "learning_rate", "gradient_window", "capacity", "accumulate", "seed")
"""Fields of :class:`Settings` that are arguments of ``fit``, in order."""


@dataclass(frozen=True)
class Settings:
    """Settings of a training run; None selects the default or, in a resumed run, the setting of the interrupted run.

    Attributes
    ----------
    resume
        Whether to continue the last training run; None if not specified.
    """

    epochs: int | None
    first_epoch: int | None
    learning_rate: float | str | None
    gradient_window: WindowArgument
    capacity: ScheduledCapacity | None
    accumulate: int | None
    seed: int | None
    resume: bool | None

    def filled(self, found: Position | None) -> Settings:
        """Return the settings, with those of the interrupted run `found` in place of None."""
        if found is None:
            return self
        old = found.recipe
        return replace(
            self,
            epochs=found.until - old.first_epoch if self.epochs is None else self.epochs,
            first_epoch=old.first_epoch if self.first_epoch is None else self.first_epoch,
            learning_rate=old.learning_rate if self.learning_rate is None else self.learning_rate,
            gradient_window=_words(old.gradient_window) if self.gradient_window is None else self.gradient_window,
            capacity=_words(old.capacity) if self.capacity is None else self.capacity,
            accumulate=old.accumulate if self.accumulate is None else self.accumulate,
            seed=old.seed if self.seed is None else self.seed,
        )


def _words(text: str) -> str | None:
    """Return a stored setting as text; None if it was not given, or was a Python function, which cannot be stored."""
    return None if FUNCTION in text else text or None


def settings_for(folder: Path, given: Settings) -> Settings:
    """Return the settings for training the project in `folder`.

    Raises
    ------
    UnfinishedTrainingError
        The last training run was interrupted, and no option says whether to continue it.
    """
    found = position_of(folder)
    if found is not None and not found.finished and given.resume is None:
        raise UnfinishedTrainingError(
            f"the training run in {str(folder)!r} was stopped {found.text}. --resume continues it, with the same resulting weights as "
            "without the interruption; --no-resume starts a new run from its weights."
        )
    return given.filled(found) if given.resume else given


def position_of(folder: Path) -> Position | None:
    """Return the position at which the last training run of a project was saved; None if there is none."""
    try:
        return read_position(folder / TRAINED)
    except WeightFileError:
        return None
