"""HDF5's heaps of variable-length text: the library loops forever on a damaged one, so they are checked first.

A heap is ``GCOL``, a version, its size in 8 bytes, then objects: a number (0 is what is free) in 2 bytes, 6 bytes, a size in 8 bytes, and
the data in whole 8 bytes (HDF5 file format specification, "Global Heap").
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from snnc.frontends.nir.errors import UnreadableNirError

_MARK: Final = b"GCOL\x01"
_HEAD: Final = 16


def check_heaps(path: Path) -> None:
    """Refuse a file with a heap in which some object does not lead to the next.

    Raises
    ------
    UnreadableNirError
        There is one.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for start in _starts(data):
                if not _sound(data, start):
                    raise UnreadableNirError(f"{path} is damaged: its heap at byte {start:,} does not end. Write the file again.")


def _starts(data: mmap.mmap) -> Iterator[int]:
    start = data.find(_MARK)
    while start >= 0:
        yield start
        start = data.find(_MARK, start + 1)


def _sound(data: mmap.mmap, start: int) -> bool:
    end = start + _number(data, start + 8, 8)
    if end > len(data):
        return True  # HDF5 refuses it itself
    at = start + _HEAD
    while at + _HEAD <= end:
        length = _number(data, at + 8, 8)
        step = _HEAD + -(-length // 8) * 8 if _number(data, at, 2) else length
        if not 0 < step <= end - at:
            return False
        at += step
    return True


def _number(data: mmap.mmap, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
