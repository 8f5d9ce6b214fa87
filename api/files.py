"""Files that appear whole or not at all: everything is written beside its place and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from snnc.backends.project import umask
from snnc.compiler.temporary import temporary_file
from snnc.errors import OutputFileError


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing; it changes only when the block ends without an error.

    Raises
    ------
    OutputFileError
        The file cannot be written.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as device:
                yield device
            return
        with temporary_file(path) as (handle, beside):
            with os.fdopen(handle, "wb", closefd=False) as stream:
                yield stream
            beside.chmod(0o666 & ~umask())
            beside.replace(path)
    except OSError as error:
        raise OutputFileError(f"{str(path)!r} cannot be written: {_reason(error)}.") from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
