"""Files that appear whole or not at all: everything is written beside its place and renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from snnc.errors import OutputFileError, OutputFolderError

MARK = "model/options.json"
"""A folder that holds this file is a project of snnc, and may be replaced by a new one."""


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
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OutputFileError(f"{str(path)!r} cannot be written: {_reason(error)}.") from None
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    except OSError as error:
        raise OutputFileError(f"{str(path)!r} cannot be written: {_reason(error)}.") from None
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder to fill; it becomes `path` only when the block ends without an error.

    Raises
    ------
    OutputFolderError
        `path` cannot be written, or holds files that are not a project of snnc.
    """
    check_replaceable(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise OutputFolderError(f"the folder {str(path)!r} cannot be made: {_reason(error)}.") from None
    try:
        beside.chmod(0o777 & ~_umask())
        yield beside
        _put_in_place(beside, path)
    except OSError as error:
        raise OutputFolderError(f"the folder {str(path)!r} cannot be written: {_reason(error)}.") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_replaceable(path: Path) -> None:
    """Refuse to replace anything but a project of snnc or an empty folder."""
    try:
        if not path.is_symlink() and not path.exists():
            return
        if not path.is_dir():
            raise OutputFolderError(f"{str(path)!r} is a file; give a folder after -o.")
        if any(path.iterdir()) and not (path / MARK).is_file():
            raise OutputFolderError(f"the folder {str(path)!r} holds files that are not a project of snnc; give a new or empty folder.")
    except OSError as error:
        raise OutputFolderError(f"the folder {str(path)!r} cannot be used: {_reason(error)}.") from None


def _put_in_place(beside: Path, path: Path) -> None:
    target = path.resolve()
    if not target.exists():
        beside.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    target.rename(old / "project")
    try:
        beside.rename(target)
    except OSError:
        (old / "project").rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
