"""Checks of numbers and paths that users give."""

from __future__ import annotations

from numbers import Integral, Real
from pathlib import Path
from typing import Literal

from snnc.errors import DataFileError, DataOptionError


def is_whole(value: object, least: int) -> bool:
    """Return whether `value` is a whole number of `least` or more."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def check_whole(name: str, value: object, least: int) -> None:
    """Raise DataOptionError unless the setting `name` is a whole number of `least` or more."""
    if not is_whole(value, least):
        raise DataOptionError(f"{name} is {value!r}; it must be a whole number of {least} or more.")


def check_number(name: str, value: object, least: float, most: float = float("inf")) -> None:
    """Raise DataOptionError unless the setting `name` is a number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) <= most:
        above = f" to {most:g}" if most < float("inf") else " or more"
        raise DataOptionError(f"{name} is {value!r}; it must be a number of {least:g}{above}.")


def check_exists(path: Path, kind: Literal["file", "folder"]) -> None:
    """Raise DataFileError unless `path` is a file, or a folder, as `kind` says."""
    if not (path.is_file() if kind == "file" else path.is_dir()):
        raise DataFileError(f"the data {kind} {str(path)!r} does not exist." if not path.exists() else f"{str(path)!r} is not a {kind}.")
