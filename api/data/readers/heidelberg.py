"""The Heidelberg data sets SHD and SSC: spikes of 700 channels of an artificial cochlea, in HDF5.

The files contain ``spikes/times`` (rows of seconds, float16), ``spikes/units`` (rows of channels), ``labels`` and ``extra`` (speakers,
names of the classes). Source: Cramer, Stradmann, Schemmel, Zenke, "The Heidelberg spiking data sets for the systematic evaluation of
spiking neural networks", IEEE TNNLS 2020, and https://zenkelab.org/datasets/.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.data.checks import check_exists
from snnc.data.data_set import DataSet, Reader
from snnc.data.readers.files import check_memory
from snnc.data.readers.vlen_rows import UnplacedError, VlenRows, rows_of
from snnc.data.sample import Aer, Array, Sample
from snnc.errors import DataFormatError

CHANNELS: Final = 700
_NAMES: Final = ("spikes/times", "spikes/units", "labels")


@dataclass(frozen=True, eq=False)
class HeidelbergFile:
    """One file of SHD or SSC; see :class:`snnc.data.data_set.SampleSource`."""

    path: Path
    classes: int
    count: int
    timed: bool = True

    def __len__(self) -> int:
        return self.count

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """See :class:`snnc.data.data_set.SampleSource`."""
        with _opened(self.path) as file, _descriptor(self.path) as descriptor:
            with _hdf5_errors(self.path, None):
                labels = np.asarray(file["labels"])
            rows = self._rows

            def read(number: int) -> tuple[Sample, Any]:
                with _hdf5_errors(self.path, number):
                    if rows is None:
                        when, where = np.asarray(file["spikes/times"][number]), np.asarray(file["spikes/units"][number])
                    else:
                        when, where = (part.read(descriptor, number) for part in rows)
                    label = int(labels[number])
                return _sample(self, number, when, where, label), label

            yield read

    @cached_property
    def _rows(self) -> tuple[VlenRows, VlenRows] | None:
        """File positions of times and units; None if only the HDF5 library can read them."""
        with _opened(self.path) as file, _descriptor(self.path) as descriptor:
            try:
                return rows_of(descriptor, file["spikes/times"]), rows_of(descriptor, file["spikes/units"])
            except UnplacedError:
                return None


def shd(path: str | Path) -> DataSet:
    """Read ``shd_train.h5`` or ``shd_test.h5``: spoken digits in German and English, 20 classes.

    Samples are events of 700 channels, with the file's times rounded to microseconds; bin them with :class:`snnc.data.Bin`.

    Raises
    ------
    DataFileError
        There is no such file.
    DataFormatError
        The file is damaged or has a different format.
    """
    return DataSet(_file(Path(path), 20))


def ssc(path: str | Path) -> DataSet:
    """Read ``ssc_train.h5``, ``ssc_valid.h5`` or ``ssc_test.h5``: spoken commands, 35 classes; otherwise like :func:`shd`."""
    return DataSet(_file(Path(path), 35))


def _file(path: Path, classes: int) -> HeidelbergFile:
    with _opened(path) as file:
        for name in _NAMES:
            if name not in file or not hasattr(file[name], "shape") or len(file[name].shape) != 1:
                raise DataFormatError(f"{str(path)!r} has no one-dimensional {name!r}, which SHD and SSC files have; get the file again.")
        sizes = [len(file[name]) for name in _NAMES]
        kinds = [_element(file[name]) for name in _NAMES]
    if len(set(sizes)) > 1:
        raise DataFormatError(f"{str(path)!r} has {sizes[0]} rows of times, {sizes[1]} of units and {sizes[2]} labels; get the file again.")
    if kinds[0] != "f" or not {*kinds[1:]} <= {"i", "u"}:
        raise DataFormatError(f"{str(path)!r} contains times, units or labels that are not numbers; get the file again.")
    return HeidelbergFile(path, classes, sizes[0])


def _element(data: Any) -> str:
    """Return numpy's kind code for the elements of a dataset, or of its variable-length rows."""
    import h5py  # type: ignore[import-untyped]

    inner = h5py.check_vlen_dtype(data.dtype)
    return str(np.dtype(data.dtype if inner is None else inner).kind)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import h5py

    check_exists(path, "file")
    with _hdf5_errors(path, None):
        file = h5py.File(path, "r")
    try:
        yield file
    finally:
        file.close()


@contextmanager
def _hdf5_errors(path: Path, number: int | None) -> Iterator[None]:
    """Convert errors of the HDF5 library, whose messages contain the file offset, to a DataFormatError."""
    try:
        yield
    except SnncError:
        raise
    except Exception as error:  # h5py raises errors of any kind for a damaged file
        where = "" if number is None else f" in sample {number}"
        raise DataFormatError(f"{str(path)!r} cannot be read as HDF5{where}: {str(error).splitlines()[0][:300].rstrip('.')}.") from None


@contextmanager
def _descriptor(path: Path) -> Iterator[int]:
    with _hdf5_errors(path, None):
        descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@cache
def _microseconds_of_float16() -> Array:
    """Return [65536]: for each bit pattern of a float16 in seconds, the time in microseconds, or -1 if it is not a valid time."""
    seconds = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    good = np.isfinite(seconds) & (seconds >= 0)
    return np.where(good, np.rint(np.where(good, seconds, 0) * 1e6), -1).astype(np.int64)


def _sample(source: HeidelbergFile, number: int, when: Any, where: Any, label: int) -> Aer:
    """Check a sample, and convert its times `when` (seconds) and channels `where` to events."""

    def bad(reason: str) -> DataFormatError:
        return DataFormatError(f"{str(source.path)!r} is damaged in sample {number}: {reason}; get the file again.")

    if when.shape != where.shape or when.ndim != 1:
        raise bad(f"it has {when.size} times and {where.size} units")
    check_memory(when.nbytes * 8, source.path, f"sample {number}")  # 2 bytes per float16 time become 16: a 64-bit time and channel
    if when.dtype == np.float16:
        times = _microseconds_of_float16()[when.view(np.uint16)]
        good = not len(times) or times.min() >= 0
    else:
        seconds = when.astype(np.float64)
        good = not len(seconds) or bool(np.isfinite(seconds).all() and seconds.min() >= 0 and seconds.max() < 1e6)
        times = np.rint(seconds * 1e6).astype(np.int64) if good else np.zeros(0, np.int64)
    if not good:
        raise bad("a time is negative or not a number")
    if len(where) and not (where.min() >= 0 and where.max() < CHANNELS):
        raise bad(f"event {int(np.argmax((where < 0) | (where >= CHANNELS)))} has the unit {where.max()}, but there are {CHANNELS} units")
    if not 0 <= label < source.classes:
        raise bad(f"its label is {label}, but there are {source.classes} classes")
    return Aer(times, where.astype(np.int64), (CHANNELS,))
