"""The machines that snnc knows, one TOML file each; :func:`load_target` reads these and a user's own files."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from snnc.compiler.machines.errors import TargetFileError, TargetValueError, UnknownTargetError
from snnc.compiler.machines.target import Target
from snnc.compiler.machines.target_file import merge, read_toml, target_from

__all__ = ["OTHERS", "load_target", "nearest", "parse_target", "target_names", "target_text"]

OTHERS: Final = ("cpu", "cuda", "reference", "poptorch")
"""Targets without a file."""


def target_names() -> tuple[str, ...]:
    """Names of the machines that come with snnc, in alphabetical order."""
    return tuple(sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml")))


def target_text(name_or_path: str | Path) -> str:
    """Return the text of a target's file, with the source of every number next to it.

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
            raise UnknownTargetError(_unknown(text))
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetFileError(f"the target file {text!r} cannot be read: {error}.") from None


def _unknown(text: str) -> str:
    if text.lower().endswith(".toml") or "/" in text:
        return f"the target file {text!r} does not exist; give the path of a TOML file, or a name: {', '.join((*OTHERS, *target_names()))}."
    near = nearest(text, (*OTHERS, *target_names()))
    meant = f" Is {near!r} meant?" if near else ""
    return (
        f"the target {text!r} is not known.{meant} snnc knows {', '.join(OTHERS)}, the machines {', '.join(target_names())}, and "
        "TOML files of your own (snnc targets lists them all)."
    )


def nearest(text: str, names: Sequence[str]) -> str | None:
    """Return the name most similar to a text, if any; case is ignored.

    Examples
    --------
    >>> nearest("GC20", ("gc2", "gc200", "cpu")), nearest("gpu:0", ("cuda", "cpu")), nearest("tpu-pod", ("gc2",))
    ('gc200', 'cuda', None)
    """
    wanted = text.lower()
    if wanted.partition(":")[0] in ("gpu", "nvidia", "cuda") and "cuda" in names:
        return "cuda"
    found = get_close_matches(wanted, names, n=1, cutoff=0.6)
    return found[0] if found else None


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
