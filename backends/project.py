"""A project folder appears whole or not at all: it is written beside its place and then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from snnc.compiler.errors import SnncError

MARKER: Final = "project.json"


class ProjectFolderError(SnncError):
    """A project's folder cannot be made or written."""

    code = "SNNC-E412"


class DiskFullError(ProjectFolderError):
    """There is no room for a project."""

    code = "SNNC-E413"


class ForeignFolderError(ProjectFolderError):
    """The folder holds something other than a project of snnc."""

    code = "SNNC-E414"


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def write_project(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write `files` (relative path -> content) as the whole of `folder`; an older project there is replaced.

    Raises
    ------
    ForeignFolderError
        The folder exists and is not empty, but holds no project.
    DiskFullError, ProjectFolderError
        The files cannot be written; nothing is left behind and an older project stays as it was.
    """
    folder = Path(folder)
    _check(folder)
    beside: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        beside.chmod(0o755)
        for name, content in files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _replace(beside, folder)
    except OSError as error:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)
        raise _explain(folder, files, error) from error
    except BaseException:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)
        raise
    return folder


def _check(folder: Path) -> None:
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise ForeignFolderError(f"{folder} holds files that are no project of snnc; give an empty or a new folder.")
    if folder.exists() and not folder.is_dir():
        raise ForeignFolderError(f"{folder} is a file; give a folder.")


def _replace(beside: Path, folder: Path) -> None:
    if not folder.exists():
        beside.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    folder.rename(old / "project")
    try:
        beside.rename(folder)
    except OSError:
        (old / "project").rename(folder)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _explain(folder: Path, files: Mapping[str, bytes], error: OSError) -> ProjectFolderError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        size = sum(map(len, files.values()))
        return DiskFullError(f"{folder} needs {size / 1e6:.1f} MB and the disk is full; free some space or choose another folder.")
    return ProjectFolderError(f"{folder} cannot be written: {os.strerror(error.errno or 0)}; choose a folder that you may write to.")
