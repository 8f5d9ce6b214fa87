"""Comma-separated name patterns of the command line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from snnc.errors import BenchError

Named = TypeVar("Named")


def matching(
    patterns: str, among: Sequence[Named], names_of: Callable[[Named], Collection[str]], what: str, known: str
) -> tuple[Named, ...]:
    """Return the elements of `among` with a name that matches one of the comma-separated patterns (shell-style: ``logged-*``), in order.

    `what` and `known` are parts of the error message: the kind of elements, such as "figure", and a clause about the existing names.
    Raise BenchError if `patterns` is empty, or a pattern matches nothing.
    """
    requested = dict.fromkeys(part.strip() for part in patterns.split(",") if part.strip())
    if not requested:
        raise BenchError(f"{patterns!r} names no {what}; {known}.")
    unmatched = [pattern for pattern in requested if not any(_matches(pattern, names_of(one)) for one in among)]
    if unmatched:
        raise BenchError(f"no {what} matches {', '.join(map(repr, unmatched))}; {known}.")
    return tuple(one for one in among if any(_matches(pattern, names_of(one)) for pattern in requested))


def _matches(pattern: str, names: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)
