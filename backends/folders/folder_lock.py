"""Locks on folders of projects and on files; the operating system releases a lock when its process ends, even if it crashes."""

from __future__ import annotations

import errno
import fcntl
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from snnc.backends.folders.manifest import LOCK
from snnc.compiler.errors import SnncError

_UNSUPPORTED: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
"""Errors of file systems that do not support locks."""
_TAKEN: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN})
"""Errors if another process holds the lock."""


class FolderInUseError(SnncError, code="SNNC-E417"):
    """Another process trains in a project's folder or replaces it."""


@contextmanager
def locked(place: Path, doing: str) -> Iterator[None]:
    """Hold the lock of a project's folder or of a file while the block runs; on file systems without locks, warn instead.

    A file need not exist; its lock is ``.NAME.lock`` next to it. `doing` says what the block does, such as ``"trains"``, for the error
    messages of other processes. Raises a FolderInUseError, which names the other process, if it holds the lock, and an OSError if the lock
    file cannot be created.
    """
    lock = place / LOCK if place.is_dir() else place.with_name(f".{place.name}.lock")
    handle = _acquired(place, lock)
    try:
        os.truncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} on {os.uname().nodename} {doing} here\n".encode(), 0)
        yield
    finally:
        if _is_at(lock, handle):  # otherwise the folder was replaced
            lock.unlink(missing_ok=True)
        os.close(handle)


def check_free(folder: Path) -> None:
    """Raise a FolderInUseError if another process holds the lock of a folder; nothing is written."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _lock(folder, handle)
    finally:
        os.close(handle)


def _acquired(place: Path, lock: Path) -> int:
    """Create and lock the lock file, and return its handle; if another process deletes the file in between, start again."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            _lock(place, handle)
        except BaseException:
            os.close(handle)
            raise
        if _is_at(lock, handle):
            return handle
        os.close(handle)


def _lock(place: Path, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            holder = os.pread(handle, 200, 0).decode("ascii", "replace").strip() or "of unknown number"
            what = f"the folder {str(place)!r}" if place.is_dir() else f"the file {str(place)!r}"
            raise FolderInUseError(f"{what} is in use: process {holder}. Wait until it ends, stop it, or choose another one.") from None
        if error.errno not in _UNSUPPORTED:
            raise
        warnings.warn(f"the file system of {str(place)!r} does not support locks: let only one process use it.", UserWarning, stacklevel=2)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except OSError:
        return False
