"""Write the weight file of a project (safetensors) array by array, and map it into memory."""

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
    """Return the header of a safetensors file of float32 arrays, and each array's name, offset in bytes and number of elements."""
    ends = itertools.accumulate((FLOAT * array.size for array in arrays.values()), initial=0)
    bounds = list(zip(arrays.items(), itertools.pairwise(ends), strict=True))
    header = {name: {"dtype": "F32", "shape": list(array.shape), "data_offsets": [first, end]} for (name, array), (first, end) in bounds}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    begin = 8 + len(text)
    places: list[dict[str, object]] = [
        {"name": name, "offset": begin + first, "elements": int(array.size)} for (name, array), (first, _) in bounds
    ]
    return struct.pack("<Q", len(text)) + text, places


def safetensors(arrays: Mapping[str, Array]) -> Iterator[Chunk]:
    """Yield the contents of a safetensors file of float32 arrays, one array at a time."""
    yield safetensors_header(arrays)[0]
    for array in arrays.values():
        yield np.ascontiguousarray(array, dtype="<f4").reshape(-1).view(np.uint8).data


def mapped(path: Path, arrays: Mapping[str, Array]) -> dict[str, Array] | None:
    """Return the arrays of a file that :func:`safetensors` wrote; None if it is missing or its names or shapes differ from `arrays`.

    The arrays are memory-mapped: they need no memory before they are read, and writes to them do not change the file.
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
