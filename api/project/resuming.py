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

    `resume` is whether to continue the last training run; None if no option says it.
    """

    epochs: int | None
    first_epoch: int | None
    learning_rate: float | str | None
    gradient_window: WindowArgument
    capacity: ScheduledCapacity | None
    accumulate: int | None
    seed: int | None
    resume: bool | None

    def filled(self, interrupted: Position | None) -> Settings:
        """Return the settings, with those of the run that was saved at `interrupted` in place of None."""
        if interrupted is None:
            return self
        old = {name: getattr(interrupted.recipe, name) for name in SETTINGS if name != "epochs"}
        old |= {"epochs": interrupted.until - interrupted.recipe.first_epoch}
        old |= {name: _stored_setting(old[name]) for name in ("gradient_window", "capacity")}
        return replace(self, **{name: value for name, value in old.items() if getattr(self, name) is None})


def _stored_setting(text: str) -> str | None:
    """Return a stored setting; None if it was not given (empty text), or was a Python function, which cannot be stored."""
    return None if FUNCTION in text else text or None


def settings_for(folder: Path, given: Settings) -> Settings:
    """Return the settings for training the project in `folder`.

    Raise UnfinishedTrainingError if the last training run was interrupted, and no option says whether to continue it.
    """
    position = position_of(folder)
    if position is not None and not position.finished and given.resume is None:
        raise UnfinishedTrainingError(
            f"the training run in {str(folder)!r} was stopped {position.text}. --resume continues it, with the same resulting weights as "
            "without the interruption; --no-resume starts a new run from its weights."
        )
    return given.filled(position) if given.resume else given


def position_of(folder: Path) -> Position | None:
    """Return the position at which the last training run of a project was saved; None if there is none."""
    try:
        return read_position(folder / TRAINED)
    except WeightFileError:
        return None
