"""The Heidelberg data sets SHD and SSC: spikes of 700 channels of an artificial cochlea, in HDF5.

The files hold ``spikes/times`` (rows of seconds, float16), ``spikes/units`` (rows of channels), ``labels`` and ``extra`` (speakers, names
of the classes). Source: Cramer, Stradmann, Schemmel, Zenke, "The Heidelberg spiking data sets for the systematic evaluation of spiking
neural networks", IEEE TNNLS 2020, and https://zenkelab.org/datasets/.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.compiler.errors import SnncError
from snnc.data.data_set import DataSet, Reader
from snnc.data.readers.files import check_memory
from snnc.data.sample import Aer, Sample
from snnc.errors import DataFileError, DataFormatError

CHANNELS: Final = 700


@dataclass(frozen=True)
class HeidelbergFile:
    """One file of SHD or SSC; see :class:`snnc.data.data_set.Source`."""

    path: Path
    classes: int
    count: int
    timed: bool = True

    def __len__(self) -> int:
        return self.count

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """See :class:`snnc.data.data_set.Source`."""
        with _opened(self.path) as file:
            times, units, labels = (file[name] for name in ("spikes/times", "spikes/units", "labels"))

            def read(number: int) -> tuple[Sample, Any]:
                with _coded(self.path, number):
                    when, where, label = np.asarray(times[number]), np.asarray(units[number]), int(labels[number])
                return _sample(self, number, when, where, label), label

            yield read


def shd(path: str | Path) -> DataSet:
    """Read ``shd_train.h5`` or ``shd_test.h5``: spoken digits in German and English, 20 classes.

    Samples are events of 700 channels with times as the file has them, rounded to microseconds; bin them with :class:`snnc.data.Bin`.

    Raises
    ------
    DataFileError
        There is no such file.
    DataFormatError
        It is damaged, or of another format.
    """
    return DataSet(_file(Path(path), 20))


def ssc(path: str | Path) -> DataSet:
    """Read ``ssc_train.h5``, ``ssc_valid.h5`` or ``ssc_test.h5``: spoken commands, 35 classes; otherwise as :func:`shd`."""
    return DataSet(_file(Path(path), 35))


def _file(path: Path, classes: int) -> HeidelbergFile:
    with _opened(path) as file:
        for name in ("spikes/times", "spikes/units", "labels"):
            if name not in file or not hasattr(file[name], "shape") or len(file[name].shape) != 1:
                raise DataFormatError(f"{str(path)!r} has no row {name!r}, which a file of SHD or SSC has; get the file again.")
        sizes = [len(file[name]) for name in ("spikes/times", "spikes/units", "labels")]
        kinds = [_element(file[name]) for name in ("spikes/times", "spikes/units", "labels")]
    if len(set(sizes)) > 1:
        raise DataFormatError(f"{str(path)!r} has {sizes[0]} rows of times, {sizes[1]} of units and {sizes[2]} labels; get the file again.")
    if kinds[0] != "f" or not {*kinds[1:]} <= {"i", "u"}:
        raise DataFormatError(f"{str(path)!r} holds times, units and labels of other types than numbers; get the file again.")
    return HeidelbergFile(path, classes, sizes[0])


def _element(data: Any) -> str:
    """Return numpy's kind of a data set's elements, or of its rows' elements."""
    import h5py  # type: ignore[import-untyped]

    inner = h5py.check_vlen_dtype(data.dtype)
    return str(np.dtype(data.dtype if inner is None else inner).kind)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import h5py

    if not path.is_file():
        raise DataFileError(f"the data file {str(path)!r} does not exist." if not path.exists() else f"{str(path)!r} is not a file.")
    with _coded(path, None):
        file = h5py.File(path, "r")
    try:
        yield file
    finally:
        file.close()


@contextmanager
def _coded(path: Path, number: int | None) -> Iterator[None]:
    """Turn any error of the HDF5 library, whose messages name the offset, into one with a code."""
    try:
        yield
    except SnncError:
        raise
    except Exception as error:  # h5py raises errors of any kind for a damaged file
        where = "" if number is None else f" in sample {number}"
        raise DataFormatError(f"{str(path)!r} cannot be read as HDF5{where}: {str(error).splitlines()[0][:300].rstrip('.')}.") from None


def _sample(source: HeidelbergFile, number: int, when: Any, where: Any, label: int) -> Aer:
    def bad(reason: str) -> DataFormatError:
        return DataFormatError(f"{str(source.path)!r} is damaged in sample {number}: {reason}; get the file again.")

    if when.shape != where.shape or when.ndim != 1:
        raise bad(f"it has {when.size} times and {where.size} units")
    check_memory(when.nbytes * 8, source.path, f"sample {number}")
    seconds = when.astype(np.float64)
    if len(seconds) and not (np.isfinite(seconds).all() and seconds.min() >= 0 and seconds.max() < 1e6):
        raise bad("a time is negative or no number")
    if len(where) and not (where.min() >= 0 and where.max() < CHANNELS):
        raise bad(f"event {int(np.argmax((where < 0) | (where >= CHANNELS)))} has the unit {where.max()}, and there are {CHANNELS}")
    if not 0 <= label < source.classes:
        raise bad(f"its label is {label}, and there are {source.classes} classes")
    return Aer(np.rint(seconds * 1e6).astype(np.int64), where.astype(np.int64), (CHANNELS,))
