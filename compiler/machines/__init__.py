"""Machines included with snnc, one TOML file each; :func:`load_target` reads these and the user's own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from snnc.compiler.machines.errors import TargetFileError, TargetValueError, UnknownTargetError
from snnc.compiler.machines.target import Target
from snnc.compiler.machines.target_file import merge, read_toml, target_from

__all__ = ["load_target", "nearest", "parse_target", "target_names", "target_text"]

OtherTargets: TypeAlias = Mapping[str, Sequence[str]]
"""Targets without a file, with their synonyms, for messages about unknown targets."""
_NONE: Final[OtherTargets] = MappingProxyType({})


@cache
def target_names() -> tuple[str, ...]:
    """Return the names of the machines included with snnc, in alphabetical order."""
    return tuple(sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml")))


def target_text(name_or_path: str | Path, other_targets: OtherTargets = _NONE) -> str:
    """Return the text of a target's file; in files included with snnc, comments give the source of every number.

    `other_targets` are listed in the message about an unknown target. A text that is neither the name of a machine nor the path of a file
    raises an UnknownTargetError; a file that cannot be read raises a TargetFileError.
    """
    text = str(name_or_path)
    if text in target_names():
        source: Traversable | Path = files(__name__) / f"{text}.toml"
    else:
        source = Path(name_or_path)
        if not source.is_file():
            raise UnknownTargetError(_unknown(text, other_targets))
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetFileError(f"the target file {text!r} cannot be read: {error}.") from None


def _unknown(text: str, other_targets: OtherTargets) -> str:
    names = (*other_targets, *target_names())
    if text.lower().endswith(".toml") or "/" in text:
        return f"the target file {text!r} does not exist; give the path of a TOML file, or a name: {', '.join(names)}."
    closest = nearest(text, names, other_targets)
    meant = f" Did you mean {closest!r}?" if closest else ""
    return (
        f"the target {text!r} is unknown.{meant} Targets are {', '.join((*other_targets, 'the machines'))} {', '.join(target_names())}, "
        "and your own TOML files (`snnc targets` lists them all)."
    )


def nearest(text: str, names: Sequence[str], other_targets: OtherTargets = _NONE) -> str | None:
    """Return the name that has `text`, up to a colon, as a synonym, or else the most similar name; None if no name is similar.

    Case is ignored.

    Examples
    --------
    >>> nearest("GC20", ("gc2", "gc200", "cpu")), nearest("gpu:0", ("cuda", "cpu"), {"cuda": ["gpu"]}), nearest("tpu-pod", ("gc2",))
    ('gc200', 'cuda', None)
    """
    wanted = text.lower()
    kind = wanted.partition(":")[0]
    known = next((name for name, synonyms in other_targets.items() if kind == name or kind in synonyms), None)
    if known is not None:
        return known
    similar = get_close_matches(wanted, names, n=1)
    return similar[0] if similar else None


def load_target(name_or_path: str | Path, other_targets: OtherTargets = _NONE) -> Target:
    """Read a machine by its name (``"gc200"``) or from a TOML file of the user.

    `other_targets` and errors are as in :func:`target_text`; a file that does not describe a machine raises another error of
    :mod:`snnc.compiler.machines.errors`.

    Examples
    --------
    >>> load_target("m2000").tiles
    5888
    """
    text = str(name_or_path)
    return _included(text) if text in target_names() else parse_target(target_text(name_or_path, other_targets), text)


@cache
def _included(name: str) -> Target:
    return parse_target(target_text(name), name)


def parse_target(text: str, where: str) -> Target:
    """Read a machine from the text of a TOML file; messages call it `where`."""
    return target_from(_values(text, where), where)


def _values(text: str, where: str) -> dict[str, Any]:
    """Return the values of a file, merged over those of the machine that it extends."""
    values = read_toml(text, where)
    base = values.pop("extends", None)
    if base is None:
        return values
    if base not in target_names() or base == where:
        raise TargetValueError(
            f"extends = {base!r} of the target file {where!r} is not a machine included with snnc; these are {', '.join(target_names())}."
        )
    inherited = {key: value for key, value in _values(target_text(base), base).items() if key != "name"}
    return merge(inherited, values)
