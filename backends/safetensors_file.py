"""Weights as a safetensors file beside the emitted sources, written one array at a time."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
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
