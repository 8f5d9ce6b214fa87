"""N-MNIST: digits recorded by a moving sensor, one file of 40-bit events per digit.

An event has five bytes: x, y, and 24 bits with the polarity in the first and microseconds in the others. An event in row 240 only
marks an overflow of the ATIS sensor's clock, by 2^13 microseconds. Source: Orchard, Jayawant, Cohen, Thakor, "Converting static
image datasets to spiking neuromorphic datasets using saccades", Frontiers in Neuroscience 2015.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from snnc.data.checks import check_exists
from snnc.data.data_set import DataSet
from snnc.data.readers.files import SampleFiles, damaged, exactly, opened_file
from snnc.data.sample import Aer
from snnc.errors import DataFileError

SIDE: Final = 34
"""Width and height of the sensor in pixels."""
_EVENT: Final = 5
"""Size of an event in bytes."""
_OVERFLOW_ROW: Final = 240
"""Row of events that mark a clock overflow."""
_OVERFLOW: Final = 2**13
"""Microseconds per clock overflow."""


class BinFolder(SampleFiles):
    """Folders ``0`` to ``9`` of files ``*.bin``."""


def nmnist(path: str | Path) -> DataSet:
    """Read a folder of N-MNIST, ``Train`` or ``Test``, with the folders ``0`` to ``9``: 34 x 34, two polarities, 10 classes.

    Raises
    ------
    DataFileError
        The folder does not exist or contains no such files.
    """
    folder = Path(path)
    check_exists(folder, "folder")
    files = [(f"{digit}/{file.name}", digit) for digit in range(10) for file in sorted((folder / str(digit)).glob("*.bin"))]
    if not files:
        raise DataFileError(f"{str(folder)!r} has no files 0/*.bin … 9/*.bin; give the folder Train or Test of N-MNIST.")
    return DataSet(BinFolder(folder, tuple(files), read_events, 10))


def read_events(path: Path) -> Aer:
    """Read a file of 40-bit events; raise DataFormatError if it ends inside an event, or an event lies outside the sensor."""
    with opened_file(path) as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        if size % _EVENT:
            raise damaged(path, size - size % _EVENT, f"{size:,} bytes are not a whole number of events of {_EVENT} bytes")
        raw = np.frombuffer(exactly(stream, size, path, "the events"), np.uint8).reshape(-1, _EVENT).astype(np.int64)
    x, y, polarity = raw[:, 0], raw[:, 1], raw[:, 2] >> 7
    times = ((raw[:, 2] & 127) << 16 | raw[:, 3] << 8 | raw[:, 4]) + np.cumsum(y == _OVERFLOW_ROW) * _OVERFLOW
    events = y != _OVERFLOW_ROW
    wrong = events & ((x >= SIDE) | (y >= SIDE))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise damaged(path, first * _EVENT, f"an event is at x {x[first]}, y {y[first]}, but the sensor has {SIDE} x {SIDE}")
    return Aer(times[events], ((polarity * SIDE + y) * SIDE + x)[events], (2, SIDE, SIDE), polar=True)
