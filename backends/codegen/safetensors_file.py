"""Writer and reader of the weight file of a project (safetensors), one array at a time."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from snnc.backends.folders.project import Chunk
from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.graph import Array


def safetensors_header(arrays: Mapping[str, Array]) -> tuple[bytes, list[dict[str, object]]]:
    """Return the header of a safetensors file of float32 arrays, and the position of each array in the file."""
    header: dict[str, object] = {}
    position = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [position, position + FLOAT * array.size]}
        position += FLOAT * array.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    places: list[dict[str, object]] = []
    offset = 8 + len(text)
    for name, array in arrays.items():
        places.append({"name": name, "offset": offset, "elements": int(array.size)})
        offset += FLOAT * array.size
    return struct.pack("<Q", len(text)) + text, places


def safetensors(arrays: Mapping[str, Array]) -> Iterator[Chunk]:
    """Yield a safetensors file of float32 arrays, one array at a time."""
    yield safetensors_header(arrays)[0]
    for array in arrays.values():
        yield np.ascontiguousarray(array, dtype="<f4").reshape(-1).view(np.uint8).data


def mapped(path: Path, arrays: Mapping[str, Array]) -> dict[str, Array] | None:
    """Return the arrays of a file that :func:`safetensors` wrote, memory-mapped: unread arrays need no memory.

    Writes to them stay in memory and do not change the file. The result is None if the file is missing or contains other arrays.
    """
    header, _ = safetensors_header(arrays)
    sizes = [array.size for array in arrays.values()]
    try:
        with path.open("rb") as stream:
            same = stream.read(len(header)) == header and path.stat().st_size == len(header) + FLOAT * sum(sizes)
    except OSError:
        return None
    if not same:
        return None
    if not sum(sizes):
        return dict(arrays)
    numbers = np.memmap(path, "<f4", "c", len(header)).view(np.ndarray)
    ends = itertools.accumulate(sizes)
    return {name: numbers[end - a.size : end].reshape(a.shape) for (name, a), end in zip(arrays.items(), ends, strict=True)}
