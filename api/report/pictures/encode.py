"""Encode arrays compactly for the page: as runs of equal values, or as base64 of little-endian numbers."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.plan_json import runs

FEW_RUNS: Final = 64
"""Maximum number of runs that are written as decimal numbers; longer lists are shorter in base64."""
MAX_LISTED: Final = 256
"""Maximum number of distinct values that an index of one byte can select."""


def pack(values: Iterable[Any] | np.ndarray[Any, Any]) -> dict[str, Any]:
    """Encode integers losslessly, in the form that is likely to be the shortest.

    - ``{"runs": [value, times, …]}``: few runs of equal values.
    - ``{"each": …, "times": …}``: many runs; their values and their lengths, each in one of the forms below.
    - ``{"of": [values], "u8": base64}``: indices into at most 256 values.
    - ``{"i32": base64}`` or ``{"f64": base64}``: all values.
    """
    array = np.asarray(values)
    starts = np.flatnonzero(np.diff(array, prepend=array[:1] - 1) != 0) if array.size else np.zeros(0, dtype=np.int64)
    if starts.size <= FEW_RUNS and (starts.size * 3 < array.size or array.size < 8):
        return {"runs": runs(array.tolist())}
    if starts.size * 2 < array.size:
        return {"each": _dense(array[starts]), "times": _dense(np.diff(starts, append=array.size))}
    return _dense(array)


def _dense(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    distinct, places = np.unique(array, return_inverse=True)
    if distinct.size <= MAX_LISTED and 2 * distinct.size < array.size:
        return {"of": distinct.tolist(), **pack_bytes(places)}
    fits = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
    kind, dtype = ("i32", "<i4") if fits else ("f64", "<f8")
    return {kind: base64.b64encode(array.astype(dtype).tobytes()).decode("ascii")}


def pack_bytes(values: np.ndarray[Any, Any]) -> dict[str, str]:
    """Encode small numbers (0 to 255) as ``{"u8": base64}``."""
    return {"u8": base64.b64encode(values.astype(np.uint8).tobytes()).decode("ascii")}


def pack_places(places: np.ndarray[Any, Any]) -> dict[str, str]:
    """Encode ascending numbers by their gaps as ``{"gaps": base64}``.

    A gap of 255 q + r, with r below 255, is q bytes of 255 and a byte r.
    """
    gaps = np.diff(places, prepend=0).astype(np.int64)
    quotients = gaps // 255
    encoded = np.full(int((quotients + 1).sum()), 255, dtype=np.uint8)
    encoded[np.cumsum(quotients + 1) - 1] = gaps % 255
    return {"gaps": base64.b64encode(encoded.tobytes()).decode("ascii")}
