"""Recipes: TOML files with training settings, as in ``snnc train build/ --data d.npz --recipe shd.toml``.

Schedules are written as text; paths are relative to the recipe.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from snnc.backends.training.saving.checkpoint import seconds_of
from snnc.backends.training.schedules import parse_schedule
from snnc.backends.training.updates.capacities import CapacityPlan
from snnc.backends.training.updates.run_values import window_ends
from snnc.backends.training.validation.metrics import checked_metrics
from snnc.backends.training.validation.stopping import MONITORS
from snnc.compiler.errors import SnncError
from snnc.data.checks import is_whole
from snnc.data.named import split_name


class RecipeError(SnncError, code="SNNC-E593"):
    """A recipe is unreadable, or has an unknown key or an invalid value."""


_WHOLE: Final = "a whole number of {} or more"
"""Description of a whole number; the placeholder is the smallest one."""
_KINDS: Final = {
    "epochs": _WHOLE.format(1),
    "first_epoch": _WHOLE.format(0),
    "batch": _WHOLE.format(1),
    "learning_rate": "a number of 0 or more, or the text of a schedule",
    "gradient_window": "a number, the text of a schedule, or a list of two of them",
    "capacity": "a number of 1 or more, a share such as 5 %, the text of a schedule, or a table of these by source",
    "shuffle": "true or false",
    "seed": _WHOLE.format(0),
    "accumulate": _WHOLE.format(1),
    "validation": "the path of an npz archive, or KIND:PATH of a data set",
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
"""Keys of a recipe, and the values they accept."""
_DATA: Final = {
    "train": "the path of an npz archive, or KIND:PATH of a data set",
    "validation": "the path of an npz archive, or KIND:PATH of a data set",
    "steps": _WHOLE.format(1),
    "dt": "a number of seconds",
    "duration": "a number of seconds",
    "downsample": _WHOLE.format(1),
    "polarity": "channels or merged",
    "encoder": "rate, latency or repeat",
}
"""Keys of the table ``[data]``, and the values they accept."""
_FILES: Final = ("train", "validation")
"""Keys whose values name data: ``PATH`` or ``KIND:PATH``."""
_PATHS: Final = ("best", "log", "tensorboard")


def read_recipe(path: str | Path) -> dict[str, Any]:
    """Return the checked settings of a recipe.

    They are arguments of ``session.fit``, except ``data``, ``validation`` and ``checkpoint_every``, which are for ``snnc train`` only.

    Raise RecipeError if the recipe is invalid; the message names the file and, for an invalid setting, the line and the key.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        contents = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"the recipe {str(file)!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"the recipe {str(file)!r} is not TOML: {error}.") from None
    for key, value in contents.items():
        table = {f"data.{name}": part for name, part in value.items()} if key == "data" and isinstance(value, dict) else {key: value}
        for name, part in table.items():
            where = f"the recipe {str(file)!r}, line {_line(text, name.removeprefix('data.'))}: {name}"
            kind = _DATA.get(name[5:]) if name.startswith("data.") else _KINDS.get(name)
            if kind is None:
                known = ", ".join(_DATA) + " in the table [data]" if name.startswith("data.") else ", ".join([*_KINDS, "[data]"])
                raise RecipeError(f"{where} is not a training setting; the settings are {known}.")
            problem = _problem(name.removeprefix("data."), part, kind)
            if problem:
                raise RecipeError(f"{where} = {part!r} must be {problem}.")
    if "validation" in contents and "validation" in contents.get("data", {}):
        raise RecipeError(f"the recipe {str(file)!r} contains validation data twice; leave one of them out.")
    settings = {key: file.parent / value if key in _PATHS else value for key, value in contents.items() if key != "data"}
    if "data" in contents:
        settings["data"] = {key: _placed(file.parent, value) if key in _FILES else value for key, value in contents["data"].items()}
    return settings | {key: _placed(file.parent, settings[key]) for key in _FILES if key in settings}


def _placed(folder: Path, name: str) -> str:
    """Return a data name, ``PATH`` or ``KIND:PATH``, after prefixing a relative path with `folder`."""
    named = split_name(name)
    return str(folder / name) if named is None else f"{named[0]}:{folder / named[1]}"


def number_or_text(text: str) -> float | str:
    """Parse a learning rate from the command line: a number, or the text of a schedule."""
    try:
        return float(text)
    except ValueError:
        return text


def _problem(key: str, value: Any, kind: str) -> str:
    """Return "" if `value` is a valid value of `key`, otherwise what it must be; `kind` describes valid values."""
    if kind == "true or false":
        good = isinstance(value, bool)
    elif kind.startswith("a whole number"):
        good = is_whole(value, int(kind.split()[4]))  # the number in _WHOLE
    elif key == "capacity" and isinstance(value, str | dict):
        good = bool(value)
    elif kind.startswith("a number of") and not (key == "learning_rate" and isinstance(value, str)):
        good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    elif key == "gradient_window":
        ends = window_ends(value)
        good = len(ends) in (1, 2) and all(isinstance(end, int | float | str) and not isinstance(end, bool) for end in ends)
    elif key == "metrics":
        good = isinstance(value, list) and all(isinstance(name, str) for name in value)
    else:
        good = isinstance(value, str) and bool(value)
    if not good:
        return kind
    try:
        if key == "learning_rate" and isinstance(value, str):
            parse_schedule(value)
        elif key == "capacity":
            CapacityPlan.of(value)
        elif key == "gradient_window":
            for end in window_ends(value):
                parse_schedule(str(end))
        elif key in _FILES:
            split_name(value)
        elif key == "metrics":
            checked_metrics(value)
        elif key == "checkpoint_every":
            seconds_of(value)
        elif key == "monitor" and value not in MONITORS:
            return kind
    except SnncError as error:
        return f"{kind}: {error.text.rstrip('.')}"
    return ""


def _line(text: str, key: str) -> int:
    lines = (number for number, line in enumerate(text.splitlines(), 1) if line.split("=")[0].strip().strip("\"'[] ").split(".")[0] == key)
    return next(lines, 1)
