"""Weights as a safetensors file beside the emitted sources, written one array at a time."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from snnc.backends.project import Chunk
from snnc.compiler.graph import Array

FLOAT: Final = 4


def safetensors_header(arrays: Mapping[str, Array]) -> tuple[bytes, list[dict[str, object]]]:
    """Return the head of a safetensors file of float32 arrays, and where each array stands in the file."""
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


def mapped(path: Path) -> dict[str, Array]:
    """Return the arrays of a file that :func:`safetensors` wrote as views of the file: what nobody reads takes no memory.

    What is written to them is kept in memory alone; the file stays as it is.
    """
    with path.open("rb") as stream:
        header = json.loads(stream.read(*struct.unpack("<Q", stream.read(8))))
        start = stream.tell()
    if path.stat().st_size == start:
        return {name: np.zeros(info["shape"], np.float32) for name, info in header.items()}
    numbers = np.memmap(path, "<f4", "c", start).view(np.ndarray)
    places = {name: [at // FLOAT for at in info["data_offsets"]] for name, info in header.items()}
    return {name: numbers[first:last].reshape(header[name]["shape"]) for name, (first, last) in places.items()}
