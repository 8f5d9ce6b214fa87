"""The machines that snnc knows, a TOML file each; :func:`load_target` reads them and a user's own."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from snnc.compiler.mapping.errors import (
    MissingTargetKeyError,
    TargetFileError,
    TargetValueError,
    UnknownTargetError,
    UnknownTargetKeyError,
)
from snnc.compiler.target import Target

__all__ = ["load_target", "parse_target", "target_names"]

_MAY_BE_ZERO: Final = frozenset({"fragment_cycles", "superstep_cycles", "fixed_tile_bytes", "fragment_code_bytes", "vertex_start_cycles"})


def target_names() -> tuple[str, ...]:
    """Names of the machines that come with snnc, in alphabetical order."""
    return tuple(sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml")))


def load_target(name_or_path: str | Path) -> Target:
    """Read a machine by its name (``"gc200"``) or from the user's own TOML file.

    Raises
    ------
    UnknownTargetError
        Neither such a name nor such a file exists.
    TargetFileError, UnknownTargetKeyError, MissingTargetKeyError, TargetValueError
        The file is not the description of a machine.

    Examples
    --------
    >>> load_target("m2000").tiles
    5888
    """
    text = str(name_or_path)
    if text in target_names():
        source: Traversable | Path = files(__name__) / f"{text}.toml"
    else:
        source = Path(name_or_path)
        if not source.is_file():
            raise UnknownTargetError(
                f"the target {text!r} is not known; snnc knows {', '.join(target_names())}, or give the path of a TOML file of your own."
            )
    try:
        return parse_target(source.read_text(encoding="utf-8"), text)
    except (OSError, UnicodeDecodeError) as error:
        raise TargetFileError(f"the target file {text!r} cannot be read: {error}.") from None


def parse_target(text: str, where: str) -> Target:
    """Read a machine from the text of a TOML file; `where` names it in messages."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TargetFileError(f"the target file {where!r} is not TOML: {error}.") from None
    known = {f.name: str(f.type) for f in fields(Target)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise UnknownTargetKeyError(f"the target file {where!r} holds {', '.join(unknown)}; known keys are {', '.join(known)}.")
    missing = [key for key in known if key not in values]
    if missing:
        raise MissingTargetKeyError(f"the target file {where!r} lacks {', '.join(missing)}; start from a copy of a target that snnc knows.")
    return Target(**{key: _value(key, kind, values, where) for key, kind in known.items()})


def _value(key: str, kind: str, values: Mapping[str, Any], where: str) -> Any:
    value = values[key]
    if kind == "str":
        if not isinstance(value, str) or (key == "name" and not value):
            raise TargetValueError(f"{key} = {value!r} of the target file {where!r} is not a text in quotes.")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TargetValueError(f"{key} = {value!r} of the target file {where!r} is not a finite number.")
    if kind == "int" and not isinstance(value, int):
        raise TargetValueError(f"{key} = {value!r} of the target file {where!r} is not a whole number.")
    if value < 0 or (value == 0 and key not in _MAY_BE_ZERO):
        least = "0 or more" if key in _MAY_BE_ZERO else "more than 0"
        raise TargetValueError(f"{key} = {value!r} of the target file {where!r} must be {least}.")
    return value if kind == "int" else float(value)
