"""Folders appear whole or not at all: a folder is written beside its place and then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from snnc.compiler.errors import SnncError

Chunk: TypeAlias = bytes | memoryview

MARKS: Final = ("project.json", "model/options.json")
"""A folder that holds one of these is a project of snnc, and may be replaced by a new one."""


class OutputFolderError(SnncError):
    """An output folder cannot be made or written."""

    code = "SNNC-E412"


class DiskFullError(OutputFolderError):
    """There is no room for an output folder."""

    code = "SNNC-E413"


class ForeignFolderError(OutputFolderError):
    """The place of an output folder holds something other than a project of snnc."""

    code = "SNNC-E414"


def write_file(path: Path, chunks: Iterable[Chunk]) -> str:
    """Write a file piece by piece, so that large ones never stand in memory; return its SHA-256 in hexadecimal."""
    found = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        for chunk in chunks:
            stream.write(chunk)
            found.update(chunk)
    return found.hexdigest()


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder to fill; it becomes `folder` only when the block ends without an error. An older project there is replaced.

    Raises
    ------
    ForeignFolderError
        The folder exists and is not empty, but holds no project.
    DiskFullError, OutputFolderError
        The files cannot be written; nothing is left behind and an older project stays as it was.
    """
    check_replaceable(folder)
    beside: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        beside.chmod(0o777 & ~umask())
        yield beside
        _put_in_place(beside, folder)
    except OSError as error:
        raise _explain(folder, error) from None
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def check_replaceable(folder: Path) -> None:
    """Refuse to replace anything but a project of snnc or an empty folder.

    Raises
    ------
    ForeignFolderError
        `folder` is a file, or holds files that are not snnc's.
    OutputFolderError
        `folder` cannot be looked at.
    """
    try:
        if not folder.is_symlink() and not folder.exists():
            return
        if not folder.is_dir():
            raise ForeignFolderError(f"{str(folder)!r} is a file; give a folder.")
        if any(folder.iterdir()) and not any((folder / mark).is_file() for mark in MARKS):
            raise ForeignFolderError(f"the folder {str(folder)!r} holds files that are not a project of snnc; give a new or empty folder.")
    except OSError as error:
        raise _explain(folder, error) from None


def _put_in_place(beside: Path, folder: Path) -> None:
    target = folder.resolve()
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


def umask() -> int:
    """Return the rights that new files of this process lack."""
    value = os.umask(0)
    os.umask(value)
    return value


def _explain(folder: Path, error: OSError) -> OutputFolderError:
    reason = (error.strerror or str(error)).lower()
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"the folder {str(folder)!r} cannot be written: {reason}; free some space or choose another place.")
    return OutputFolderError(f"the folder {str(folder)!r} cannot be written: {reason}; choose a place that you may write to.")
