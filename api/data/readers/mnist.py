"""MNIST and data sets in its format: idx files, plain or gzipped.

An idx file has two zero bytes, the type (8: unsigned bytes), the number of axes, the axes as 32-bit big-endian numbers, and the values.
Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits".
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from snnc.data.data_set import DataSet
from snnc.data.readers.files import check_memory, damaged, exactly, opened_file
from snnc.data.readers.plain import row_set
from snnc.data.sample import Array
from snnc.errors import DataFormatError

_BYTES: Final = 8
"""Type code of unsigned bytes."""


def mnist(images: str | Path, labels: str | Path | None = None) -> DataSet:
    """Read ``train-images-idx3-ubyte`` or another pair of idx files, ``.gz`` or not: values of 0 to 1 without a time axis.

    Parameters
    ----------
    images
        The file with the images.
    labels
        The file with the labels; by default the name of `images` with ``labels-idx1`` for ``images-idx3``.

    Raises
    ------
    DataFileError, DataFormatError
        A file is missing, damaged, or has a different format.
    """
    image_file = Path(images)
    label_file = Path(labels) if labels is not None else image_file.with_name(image_file.name.replace("images-idx3", "labels-idx1"))
    x, y = read_idx(image_file, 3), read_idx(label_file, 1)
    return row_set(str(image_file), x, y, timed=False, classes=10, scale=1 / 255)


def read_idx(path: Path, axes: int) -> Array:
    """Read an idx file of bytes with `axes` axes."""
    head = 4 + 4 * axes
    with opened_file(path) as stream:
        gzipped = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        if not gzipped:
            shape = _shape(exactly(stream, head, path, "the header"), axes, path)
            raw = exactly(stream, math.prod(shape), path, "the values")
            if stream.read(1):
                raise damaged(path, head + math.prod(shape), "there are more bytes after the values")
            return np.frombuffer(raw, np.uint8).reshape(shape)
        try:
            with gzip.GzipFile(fileobj=stream) as inner:
                shape = _shape(inner.read(head), axes, path)
                check_memory(math.prod(shape), path, "the array")
                raw = inner.read(math.prod(shape) + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise damaged(path, stream.tell(), f"the compressed data end early or are damaged ({str(error)[:100].rstrip('.')})") from None
    if len(raw) != math.prod(shape):
        raise damaged(path, head + min(len(raw), math.prod(shape)), f"the file declares {math.prod(shape):,} values but has more or fewer")
    return np.frombuffer(raw, np.uint8).reshape(shape)


def _shape(head: bytes, axes: int, path: Path) -> tuple[int, ...]:
    if len(head) < 4 + 4 * axes or head[:4] != bytes([0, 0, _BYTES, axes]):
        raise DataFormatError(f"{str(path)!r} does not start like an idx file of bytes with {axes} axes (byte 0); get the file again.")
    return tuple(np.frombuffer(head, ">i4", axes, 4).astype(np.int64).tolist())
