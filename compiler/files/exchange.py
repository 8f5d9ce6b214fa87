"""Exchange of two folders: in one step if the file system can do so, so that neither is ever missing."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_HERE: Final = -100
"""``AT_FDCWD`` of Linux: relative paths start at the current folder."""
_EXCHANGE: Final = 2
"""``RENAME_EXCHANGE`` of Linux."""
_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM})
"""Error numbers of a system or file system that cannot exchange two folders in one step."""


def exchange(first: Path, second: Path) -> None:
    """Exchange two folders on one file system.

    If the file system cannot exchange them in one step, three renames are used; if `first` cannot be renamed, `second` is restored. If the
    folders cannot be exchanged, an OSError is raised; both are unchanged, unless the last of three renames fails.
    """
    error = _exchanged(first, second)
    if error == 0:
        return
    if error not in _UNSUPPORTED:
        raise OSError(error, os.strerror(error), str(second))
    between = Path(tempfile.mkdtemp(prefix=f".{second.name}.old.", dir=second.parent))
    try:
        second.rename(between / "project")
        try:
            first.rename(second)
        except OSError:
            (between / "project").rename(second)
            raise
        (between / "project").rename(first)
    finally:
        with suppress(OSError):  # if the last rename failed, the folder is not empty, and that error is raised
            between.rmdir()


def _exchanged(first: Path, second: Path) -> int:
    """Exchange two folders with ``renameat2``; return 0, or the error number."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return errno.ENOSYS
    return 0 if rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0 else ctypes.get_errno()
