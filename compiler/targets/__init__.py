"""The machines that snnc knows, a TOML file each; :func:`load_target` reads them and a user's own."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from snnc.compiler.target import Target
from snnc.compiler.target_errors import TargetFileError, TargetValueError, UnknownTargetError
from snnc.compiler.target_file import merge, read_toml, target_from

__all__ = ["load_target", "parse_target", "target_names", "target_text"]


def target_names() -> tuple[str, ...]:
    """Names of the machines that come with snnc, in alphabetical order."""
    return tuple(sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml")))


def target_text(name_or_path: str | Path) -> str:
    """Return the text of a target's file, with the source of every number beside it.

    Raises
    ------
    UnknownTargetError
        Neither such a name nor such a file exists.
    TargetFileError
        The file cannot be read.
    """
    text = str(name_or_path)
    if text in target_names():
        source: Traversable | Path = files(__name__) / f"{text}.toml"
    else:
        source = Path(name_or_path)
        if not source.is_file():
            raise UnknownTargetError(
                f"the target {text!r} is not known; snnc knows cpu (this processor), reference, {', '.join(target_names())}, "
                "or give the path of a TOML file of your own."
            )
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetFileError(f"the target file {text!r} cannot be read: {error}.") from None


def load_target(name_or_path: str | Path) -> Target:
    """Read a machine by its name (``"gc200"``) or from the user's own TOML file.

    Raises
    ------
    UnknownTargetError
        Neither such a name nor such a file exists.
    TargetFileError, UnknownTargetKeyError, MissingTargetKeyError, TargetValueError, MachineSizeError, LinksError, UnreachableChipError
        The file is not the description of a machine.

    Examples
    --------
    >>> load_target("m2000").tiles
    5888
    """
    return parse_target(target_text(name_or_path), str(name_or_path))


def parse_target(text: str, where: str) -> Target:
    """Read a machine from the text of a TOML file; `where` names it in messages."""
    return target_from(_values(text, where), where)


def _values(text: str, where: str) -> dict[str, Any]:
    """Values of a file, over those of the machine that it extends."""
    values = read_toml(text, where)
    base = values.pop("extends", None)
    if base is None:
        return values
    if base not in target_names() or base == where:
        raise TargetValueError(
            f"extends = {base!r} of the target file {where!r} names no machine that snnc knows; those are {', '.join(target_names())}."
        )
    inherited = {key: value for key, value in _values(target_text(base), base).items() if key != "name"}
    return merge(inherited, values)
