"""Read parts of files, after checking their sizes against the file and the machine's memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO

from snnc.compiler.ir.arrays.sizes import machine_memory
from snnc.errors import DataFileError, DataFormatError, MemoryShortError


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
