"""Names of parts of an array: ``state[0]`` and ``state[:, 64:128]`` are parts of ``state``, in NumPy's notation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Index: TypeAlias = tuple[int | slice, ...]
_PART: Final = re.compile(r"(.+)\[([0-9:, ]+)\]", re.DOTALL)
_ENTRY: Final = re.compile(r"(\d{1,9})|(\d{0,9}):(\d{0,9})")


def part_name(whole: str, index: Index) -> str:
    """Return the name of a part.

    Examples
    --------
    >>> part_name("state", (slice(None), slice(64, 128)))
    'state[:, 64:128]'
    """
    return f"{whole}[{', '.join(_text(k) for k in index)}]"


def part_of(name: str) -> tuple[str, Index] | None:
    """Return the name of the whole array and the index of the part; None if `name` is not the name of a part.

    Examples
    --------
    >>> part_of("state[1]")
    ('state', (1,))
    """
    match = _PART.fullmatch(name)
    entries = [_ENTRY.fullmatch(e.strip()) for e in match[2].split(",")] if match else []
    if match is None or None in entries:
        return None
    return match[1], tuple(int(e[1]) if e[1] else slice(_bound(e[2]), _bound(e[3])) for e in entries if e is not None)


def arrays_with_parts(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the parts among `names`, by the name of the whole array."""
    parts: dict[str, list[str]] = {}
    for name in names:
        part = part_of(name)
        if part is not None:
            parts.setdefault(part[0], []).append(name)
    return parts


def read_part(array: npt.ArrayLike, name: str) -> npt.NDArray[Any] | None:
    """Return the part `name` of a whole array; None if the array has no such part, or the part is a single number.

    A scalar is returned unchanged, and so is any array if `name` is not the name of a part.
    """
    whole, part = np.asarray(array), part_of(name)
    if part is None or not whole.ndim:
        return whole
    try:
        values: npt.NDArray[Any] = whole[part[1]]
    except IndexError:
        return None
    ends_outside = any(isinstance(k, slice) and (k.stop or 0) > size for k, size in zip(part[1], whole.shape, strict=False))
    return None if ends_outside or not values.ndim else values


def split_into_parts(arrays: Mapping[str, npt.ArrayLike], names: Iterable[str]) -> dict[str, npt.ArrayLike]:
    """Replace each array whose parts are among `names` with these parts; an array that lacks any of them is unchanged."""
    names = list(names)
    known, parts = set(names), arrays_with_parts(names)
    result: dict[str, npt.ArrayLike] = {}
    for name, array in arrays.items():
        pieces = {} if name in known else {p: read_part(array, p) for p in parts.get(name, ())}
        if pieces and all(p is not None for p in pieces.values()):
            result |= {p: a for p, a in pieces.items() if a is not None and p not in arrays}
        else:
            result[name] = array
    return result


def _text(entry: int | slice) -> str:
    if isinstance(entry, int):
        return str(entry)
    return f"{'' if entry.start is None else entry.start}:{'' if entry.stop is None else entry.stop}"


def _bound(text: str) -> int | None:
    return int(text) if text else None
