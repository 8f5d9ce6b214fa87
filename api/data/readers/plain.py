"""Data sets of arrays in memory, in npy files (read sample by sample) and in npz archives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.arrays import array_of
from snnc.compiler.ir.graph import Shape
from snnc.data.archive import Archive, call_parser, pickled
from snnc.data.arrays import pick
from snnc.data.data_set import DataSet, Reader
from snnc.data.readers.files import damaged, exactly, opened_file
from snnc.data.sample import Array, Sample
from snnc.errors import DataFormatError, SampleError


@dataclass(frozen=True)
class NpyRows:
    """An array in an npy file, read row by row on request; its data start at byte `at`."""

    path: Path
    at: int
    shape: Shape
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, path: Path) -> NpyRows:
        """Read the header of a file; raise DataFormatError unless it is an npy file in row order whose size is the declared size."""
        with opened_file(path) as stream:
            try:
                version = np.lib.format.read_magic(stream)
                read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, by_columns, dtype = call_parser(read_header, stream)
            except Exception as error:  # numpy raises errors of any kind for a damaged header
                raise damaged(path, stream.tell(), str(error).splitlines()[0][:200].rstrip(".")) from None
            if dtype.hasobject:
                raise pickled(path)
            at, end = stream.tell(), stream.seek(0, 2)
        if not shape or any(n < 0 for n in shape) or (by_columns and len(shape) > 1):
            raise DataFormatError(
                f"{str(path)!r} has the shape {list(shape)} or is in column order; save np.ascontiguousarray(x), samples first."
            )
        needed = math.prod(shape) * dtype.itemsize
        if needed != end - at:
            reason = f"the array {list(shape)} of {dtype} needs {needed:,} bytes, but the file contains {end - at:,} bytes of data"
            raise damaged(path, min(at + needed, end), reason)
        return cls(path, at, shape, dtype)

    @contextmanager
    def opened(self) -> Iterator[Callable[[int], Array]]:
        """Open the file for one pass, and yield a function that returns row `number`."""
        inner = self.shape[1:]
        size = math.prod(inner) * self.dtype.itemsize
        with opened_file(self.path) as stream:

            def read(number: int) -> Array:
                stream.seek(self.at + number * size)
                return np.frombuffer(exactly(stream, size, self.path, f"sample {number}"), self.dtype).reshape(inner)

            yield read

    def all(self) -> Array:
        """Read the whole array."""
        with opened_file(self.path) as stream:
            stream.seek(self.at)
            raw = exactly(stream, math.prod(self.shape) * self.dtype.itemsize, self.path, "the array")
        return np.frombuffer(raw, self.dtype).reshape(self.shape)


Rows: TypeAlias = Array | NpyRows
"""Samples or targets along the first axis of an array in memory or in an npy file."""


@dataclass(frozen=True, eq=False)
class RowSource:
    """Samples `x` and targets `y`, one row each; see :class:`snnc.data.data_set.SampleSource`."""

    name: str
    x: Rows
    y: Rows
    classes: int | None
    timed: bool
    scale: float | None = None
    """Factor by which samples are multiplied, as float32; None leaves values and type unchanged."""

    def __len__(self) -> int:
        return self.x.shape[0]

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """See :class:`snnc.data.data_set.SampleSource`."""
        with ExitStack() as stack:
            x, y = (stack.enter_context(rows.opened()) if isinstance(rows, NpyRows) else rows.__getitem__ for rows in (self.x, self.y))

            def read(number: int) -> tuple[Sample, Any]:
                row = x(number)
                return (row if self.scale is None else row.astype(np.float32) * np.float32(self.scale)), y(number)

            yield read

    def __repr__(self) -> str:
        return self.name


def in_memory(x: npt.ArrayLike, y: npt.ArrayLike, *, timed: bool = True) -> DataSet:
    """Return a data set of arrays in memory, which may be memory maps.

    Parameters
    ----------
    x
        [samples, T, *shape], or [samples, *shape] if not `timed`.
    y
        [samples, …], class indices or other targets.
    timed
        Whether the second axis of `x` is time.

    Raises
    ------
    SampleError
        The arrays differ in length.
    """
    return row_set("arrays", array_of(x, "x"), array_of(y, "y"), timed)


def npy(x: str | Path, y: str | Path, *, timed: bool = True) -> DataSet:
    """Return a data set of two npy files, which are read only when a batch needs a sample; otherwise like :func:`in_memory`."""
    return row_set(str(x), NpyRows.of(Path(x)), NpyRows.of(Path(y)), timed)


def npz(path: str | Path, x: str = "x", y: str = "y", *, timed: bool = True) -> DataSet:
    """Return a data set of two arrays of an npz archive, which are read completely; for data larger than memory use :func:`npy`.

    Raises
    ------
    MissingArrayError
        The archive lacks one of the arrays.
    """
    file = Path(path)
    with opened_file(file):
        archive = Archive(file)
    return row_set(str(file), pick(archive, x, file), pick(archive, y, file), timed)


def row_set(name: str, x: Rows, y: Rows, timed: bool, classes: int | None = None, scale: float | None = None) -> DataSet:
    """Return a data set of rows of samples and targets, see :class:`RowSource`; raise SampleError if their numbers differ."""
    if not x.shape or not y.shape or x.shape[0] != y.shape[0]:
        raise SampleError(f"{name}: the samples are {list(x.shape)} and the targets {list(y.shape)}; the first axes must be equal.")
    return DataSet(RowSource(name, x, y, classes, timed, scale))
