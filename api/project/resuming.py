"""Settings of ``snnc train`` for a project whose last training run was interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from snnc.backends.folders.manifest import TRAINED
from snnc.backends.runtime.errors import UnfinishedTrainingError, WeightFileError
from snnc.backends.training.saving.checkpoint import Position, read_position
from snnc.backends.training.schedules import FUNCTION

_STORED: Final = ("first_epoch", "learning_rate", "gradient_window", "capacity", "accumulate", "seed")
"""Arguments of ``fit`` that a resumed run takes from the interrupted one, in addition to the number of epochs."""


def settings_for(folder: Path, settings: Mapping[str, Any], resume: bool | None) -> dict[str, Any]:
    """Return the arguments of ``fit`` for training the project in `folder`: `settings`, which in a resumed run override the stored ones.

    `resume` is whether to continue the last training run; None if no option says it. Raise UnfinishedTrainingError if it is None, and the
    last training run was interrupted.
    """
    position = position_of(folder)
    if position is not None and not position.finished and resume is None:
        raise UnfinishedTrainingError(
            f"the training run in {str(folder)!r} was stopped {position.text}. --resume continues it, with the same resulting weights as "
            "without the interruption; --no-resume starts a new run from its weights."
        )
    if position is None or not resume:
        return dict(settings)
    stored = {name: getattr(position.recipe, name) for name in _STORED}
    for name in ("gradient_window", "capacity"):  # an empty text stands for no setting; a Python function is not stored
        stored[name] = None if FUNCTION in stored[name] else stored[name] or None
    return {**stored, "epochs": position.until - position.recipe.first_epoch, **settings}


def position_of(folder: Path) -> Position | None:
    """Return the position at which the last training run of a project was saved; None if there is none."""
    try:
        return read_position(folder / TRAINED)
    except WeightFileError:
        return None
