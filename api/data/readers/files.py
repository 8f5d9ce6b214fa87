"""Sources of one or more samples per file, and reading of files whose sizes are checked against the file and the machine's memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from snnc.compiler.ir.arrays.sizes import machine_memory
from snnc.data.data_set import Reader
from snnc.data.sample import Aer
from snnc.errors import DataFileError, DataFormatError, MemoryShortError


@dataclass(frozen=True)
class SampleFiles:
    """Samples in files of the folder `path`; see :class:`snnc.data.data_set.SampleSource`."""

    path: Path
    samples: tuple[tuple[Any, ...], ...] = field(repr=False)
    """Per sample: file name, class, and any further arguments of `read`."""
    read: Callable[..., Aer] = field(repr=False)
    """Reads a sample from a file."""
    classes: int
    timed: bool = True

    def __len__(self) -> int:
        return len(self.samples)

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """See :class:`snnc.data.data_set.SampleSource`."""

        def read(number: int) -> tuple[Aer, int]:
            name, label, *arguments = self.samples[number]
            return self.read(self.path / name, *arguments), label

        yield read


@contextmanager
def opened_file(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading; raise DataFileError if it is missing or cannot be read."""
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise DataFileError(f"the data file {str(path)!r} cannot be read: {(error.strerror or str(error)).lower()}.") from None


def exactly(stream: IO[bytes], count: int, path: Path, what: str) -> bytes:
    """Read `count` bytes; raise DataFormatError if the file ends earlier, MemoryShortError if the bytes exceed the memory."""
    at = stream.tell()
    check_memory(count, path, what)
    remaining = os.fstat(stream.fileno()).st_size - at
    if remaining < count:
        raise damaged(path, at, f"{what} needs {count:,} bytes, but the file has only {max(remaining, 0):,} more")
    return stream.read(count)


def check_memory(count: int, path: Path, what: str) -> None:
    """Raise MemoryShortError if `count` bytes exceed the machine's memory; `what` is the part of the file that needs them."""
    memory = machine_memory()
    if count > memory:
        raise MemoryShortError(f"{what} of {str(path)!r} needs {count:,} bytes, but this machine has {memory:,} bytes of memory.")


def damaged(path: Path, at: int, reason: str) -> DataFormatError:
    """Return the error for a file that is damaged at byte `at`."""
    return DataFormatError(f"{str(path)!r} is damaged at byte {at:,}: {reason}; get the file again.")
