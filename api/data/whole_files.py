"""Write files completely or not at all: into a temporary file in the same folder, which is then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from snnc.backends.folders.manifest import TRAINED, written_files
from snnc.compiler.files.temporary import temporary_file
from snnc.errors import OutputFileError, SameFileError


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing; the file appears, or is replaced, only when the block ends without an error.

    A device such as ``/dev/null`` is written directly. Raise OutputFileError if the file cannot be written.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as device:
                yield device
            return
        with temporary_file(path) as (handle, beside):
            with os.fdopen(handle, "wb", closefd=False) as stream:
                yield stream
            mask = os.umask(0)
            os.umask(mask)
            beside.chmod(0o666 & ~mask)
            beside.replace(path)
    except OSError as error:
        raise OutputFileError(f"{str(path)!r} cannot be written: {(error.strerror or str(error)).lower()}.") from None


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, completely or not at all."""
    with whole_file(path) as stream:
        stream.write(content)


def write_text(path: Path, text: str) -> None:
    """Write a text to a file in UTF-8, completely or not at all."""
    write_bytes(path, text.encode())


def check_output(output: Path | None, *read: Path | None) -> None:
    """Raise SameFileError if a command's output is one of the files `read` by it, or a file of a project.

    The outputs None and ``-`` are not files.
    """
    if output is None or str(output) == "-" or not output.is_file():
        return
    for file in read:
        if file is not None and file.exists() and output.samefile(file):
            raise SameFileError(f"{str(output)!r} is a file that this command reads; give a different output file.")
    place = output.resolve()
    for folder in (place.parent, place.parent.parent):
        project_files = written_files(folder)
        if project_files is not None and place.relative_to(folder).as_posix() in {*project_files, TRAINED}:
            raise SameFileError(f"{str(output)!r} is a file of the project {str(folder)!r}; give a different output file.")
