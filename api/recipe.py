"""Recipes: TOML files with the settings of a training, ``snnc train build/ --data d.npz --recipe shd.toml``.

A recipe has the arguments of ``session.fit`` as keys. Schedules are written as text; paths are relative to the recipe.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from snnc.backends.training.checkpoint import seconds_of
from snnc.backends.training.metrics import checked_metrics
from snnc.backends.training.run_values import window_ends
from snnc.backends.training.schedules import parse_schedule
from snnc.backends.training.stopping import MONITORS
from snnc.compiler.errors import SnncError


class RecipeError(SnncError):
    """A recipe cannot be read, has an unknown key, or a value of the wrong type or out of range."""

    code = "SNNC-E593"


_WHOLE: Final = "a whole number of {} or more"
_KINDS: Final = {
    "epochs": _WHOLE.format(1),
    "first_epoch": _WHOLE.format(0),
    "batch": _WHOLE.format(1),
    "learning_rate": "a number of 0 or more, or the text of a schedule",
    "gradient_window": "a number, the text of a schedule, or a list of two of them",
    "shuffle": "true or false",
    "seed": _WHOLE.format(0),
    "accumulate": _WHOLE.format(1),
    "validation": "the path of an npz archive",
    "metrics": "a list of names",
    "monitor": "loss or accuracy",
    "patience": _WHOLE.format(1),
    "min_delta": "a number of 0 or more",
    "best": "a path",
    "restore_best": "true or false",
    "log": "a path",
    "tensorboard": "a path",
    "checkpoint_every": "a time, such as 30s, 5m or none",
}
"""The keys, and what each takes."""
_PATHS: Final = ("validation", "best", "log", "tensorboard")


def read_recipe(path: str | Path) -> dict[str, Any]:
    """Return the settings of a recipe, checked; ``session.fit(x, y, **read_recipe("shd.toml"))`` takes those without files of data.

    Paths are relative to the folder of the recipe. ``validation`` is a path, and ``checkpoint_every`` a duration, for ``snnc train``.

    Raises
    ------
    RecipeError
        With the file, the line and the key.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"the recipe {str(file)!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"the recipe {str(file)!r} is not TOML: {error}.") from None
    for key, value in found.items():
        where = f"the recipe {str(file)!r}, line {_line(text, key)}: {key}"
        if key not in _KINDS:
            raise RecipeError(f"{where} is not a setting of a training; there are {', '.join(_KINDS)}.")
        problem = _problem(key, value)
        if problem:
            raise RecipeError(f"{where} = {value!r} must be {problem}.")
    return {key: file.parent / value if key in _PATHS else value for key, value in found.items()}


def number_or_text(text: str) -> float | str:
    """Return a learning rate of the command line: a number, or the text of a schedule."""
    try:
        return float(text)
    except ValueError:
        return text


def _problem(key: str, value: Any) -> str:
    """Return what a value must be; nothing if it is that."""
    kind = _KINDS[key]
    if kind == "true or false":
        good = isinstance(value, bool)
    elif kind.startswith("a whole number"):
        good = isinstance(value, int) and not isinstance(value, bool) and value >= int(kind.split()[4])
    elif kind.startswith("a number of") and not (key == "learning_rate" and isinstance(value, str)):
        good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    elif key == "gradient_window":
        good = _is_window(value)
    elif key == "metrics":
        good = isinstance(value, list) and all(isinstance(name, str) for name in value)
    else:
        good = isinstance(value, str) and bool(value)
    if not good:
        return kind
    try:
        if key == "learning_rate" and isinstance(value, str):
            parse_schedule(value)
        elif key == "gradient_window":
            for end in window_ends(value):
                parse_schedule(str(end))
        elif key == "metrics":
            checked_metrics(value)
        elif key == "checkpoint_every":
            seconds_of(value)
        elif key == "monitor" and value not in MONITORS:
            return kind
    except SnncError as error:
        return f"{kind}: {error.text.rstrip('.')}"
    return ""


def _is_window(value: Any) -> bool:
    ends = window_ends(value)
    return len(ends) in (1, 2) and all(isinstance(end, int | float | str) and not isinstance(end, bool) for end in ends)


def _line(text: str, key: str) -> int:
    """Return the number of the line that sets a key."""
    lines = (number for number, line in enumerate(text.splitlines(), 1) if line.split("=")[0].strip().strip("\"'[] ").split(".")[0] == key)
    return next(lines, 1)
