"""DVS-Gesture: eleven gestures recorded with a 128 x 128 sensor, as AEDAT 3.1 recordings or as samples cut by other libraries (npy, npz).

Source: Amir et al., "A low power, fully event-based gesture recognition system", CVPR 2017.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.data.archive import Archive
from snnc.data.checks import check_exists
from snnc.data.data_set import DataSet
from snnc.data.readers.aedat import index_of, read_between
from snnc.data.readers.files import SampleFiles, opened_file
from snnc.data.readers.plain import NpyRows
from snnc.data.sample import Aer, Array
from snnc.errors import DataFileError, DataFormatError

SIDE: Final = 128
"""Width and height of the sensor in pixels."""
CLASSES: Final = 11
"""Number of gestures; the files of labels count them from 1."""


class Recordings(SampleFiles):
    """Samples cut from recordings ``*.aedat`` by the start and end times of their gestures."""


class CutFiles(SampleFiles):
    """Files ``*.npy`` or ``*.npz`` with one sample each."""


def dvs_gesture(path: str | Path, trials: str | Path | None = None) -> DataSet:
    """Read a folder of DVS-Gesture: 128 x 128, two polarities, classes 0 to 10.

    The folder contains one of these:

    - the official ``user01_fluorescent.aedat``, …, each with ``user01_fluorescent_labels.csv``,
    - tonic's files ``user01_fluorescent/0.npy``, …: rows of x, y, polarity and milliseconds, named by class,
    - SpikingJelly's files ``0/user01_fluorescent_0.npz``, …: arrays t (microseconds), x, y and p, in folders named by class.

    Parameters
    ----------
    path
        The folder.
    trials
        A file such as ``trials_to_train.txt`` that lists the recordings to use, one per line; None for all.

    Raises
    ------
    DataFileError
        The folder, the list of recordings or a recording does not exist, or a recording has no file of labels.
    DataFormatError
        A file of labels is damaged.
    """
    folder = Path(path)
    check_exists(folder, "folder")
    names = sorted(f.name for f in folder.glob("*.aedat"))
    if trials is not None:
        names = [line.strip() for line in _text(Path(trials)).splitlines() if line.strip()]
    if names:
        return DataSet(Recordings(folder, tuple(piece for name in names for piece in _pieces(folder, name)), _PieceReader(), CLASSES))
    candidates = [(f"{f.parent.name}/{f.name}", f.stem) for f in sorted(folder.glob("*/*.npy"))]
    candidates += [(f"{f.parent.name}/{f.name}", f.parent.name) for f in sorted(folder.glob("*/*.npz"))]
    files = tuple((name, int(label)) for name, label in candidates if label.isdecimal() and int(label) < CLASSES)
    if not files or len(files) != len(candidates):
        raise DataFileError(f"{str(folder)!r} has no *.aedat, and no files */CLASS.npy or CLASS/*.npz of classes 0 … {CLASSES - 1}.")
    return DataSet(CutFiles(folder, files, _read_cut, CLASSES))


def _text(path: Path) -> str:
    with opened_file(path) as stream:
        return stream.read().decode("utf-8", "replace")


def _pieces(folder: Path, name: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield the samples of a recording from its labels file: name, class, start and end in microseconds; the end is excluded."""
    labels = folder / f"{name.removesuffix('.aedat')}_labels.csv"
    for number, row in enumerate(csv.reader(_text(labels).splitlines())):
        if number == 0 or not row:
            continue
        if (
            len(row) != 3
            or not all(cell.strip().isdecimal() for cell in row)
            or not 1 <= int(row[0]) <= CLASSES
            or int(row[1]) > int(row[2])
        ):
            raise DataFormatError(f"{str(labels)!r} is damaged in line {number + 1}: {row}; a line is class (1 … {CLASSES}), start, end.")
        yield name, int(row[0]) - 1, int(row[1]), int(row[2])


class _PieceReader:
    """Reads samples of recordings between two times; each recording is indexed once."""

    def __init__(self) -> None:
        self._packets: dict[Path, Array] = {}

    def __call__(self, file: Path, start: int, end: int) -> Aer:
        if file not in self._packets:
            self._packets[file] = index_of(file)
        return read_between(file, self._packets[file], start, end, SIDE, SIDE)


def _read_cut(file: Path) -> Aer:
    return _events(file, *(_npy_columns(file) if file.suffix == ".npy" else _npz_columns(file)))


def _npy_columns(file: Path) -> tuple[Any, Any, Any, Any]:
    """Return x, y, polarity and microseconds of the events in one of tonic's files."""
    rows = NpyRows.of(file)
    if len(rows.shape) != 2 or rows.shape[1] != 4:
        raise DataFormatError(f"{str(file)!r} has the shape {list(rows.shape)}; give rows of x, y, polarity and milliseconds.")
    table = rows.all().astype(np.float64)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3] * 1000


def _npz_columns(file: Path) -> tuple[Any, Any, Any, Any]:
    """Return x, y, polarity and microseconds of the events in one of SpikingJelly's files."""
    arrays = Archive(file)
    if not {"x", "y", "p", "t"} <= set(arrays):
        raise DataFormatError(f"{str(file)!r} contains {', '.join(arrays) or 'nothing'}; give the arrays t, x, y and p.")
    return arrays["x"], arrays["y"], arrays["p"], arrays["t"]


def _events(file: Path, x: Any, y: Any, polarity: Any, times: Any) -> Aer:
    """Check the columns of a sample, times in microseconds, and convert them to events; the earliest gets the time 0."""
    if not x.shape == y.shape == polarity.shape == times.shape or x.ndim != 1:
        raise DataFormatError(f"{str(file)!r} contains columns of different lengths; get the file again.")
    wrong = ~((x >= 0) & (x < SIDE) & (y >= 0) & (y < SIDE) & (polarity >= 0) & (polarity <= 1) & (times >= 0))
    if wrong.any():
        first = int(np.argmax(wrong))
        where = f"x {x[first]}, y {y[first]}, polarity {polarity[first]}, time {times[first]}"
        raise DataFormatError(f"{str(file)!r} is damaged: event {first} is at {where}; get the file again.")
    columns = [np.asarray(c).astype(np.int64) for c in (x, y, polarity, times)]
    start = columns[3].min() if len(columns[3]) else 0
    return Aer(columns[3] - start, (columns[2] * SIDE + columns[1]) * SIDE + columns[0], (2, SIDE, SIDE), polar=True)
