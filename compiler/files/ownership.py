"""Owners and permissions of files and folders: files that another user could have written are neither loaded nor executed."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

ROOT: Final = 0
"""User id of root, who can change any file."""
_OTHERS: Final = stat.S_IWOTH
_GROUP: Final = stat.S_IWGRP


def foreign_owner(status: os.stat_result) -> str | None:
    """Return the name of a file's owner if it is neither this user nor root; else None."""
    return None if status.st_uid in (os.geteuid(), ROOT) else _name(pwd.getpwuid, status.st_uid)


def foreign_writers(status: os.stat_result) -> str | None:
    """Return who besides its owner may write a file: ``"everybody"`` or ``"the group …"``; None: only trusted users."""
    if stat.S_ISLNK(status.st_mode):  # the permissions of a link have no effect
        return None
    if status.st_mode & _OTHERS:
        return "everybody"
    if status.st_mode & _GROUP and not _is_own_group(status.st_gid):
        return f"the group {_name(grp.getgrgid, status.st_gid)}"
    return None


def fault_of(path: Path) -> str | None:
    """Return why a file or folder is not safe to load, as words that follow its name in a sentence; None if it is safe."""
    status = path.lstat()
    owner, writer = foreign_owner(status), foreign_writers(status)
    if owner is not None:
        return f"belongs to the user {owner}"
    return None if writer is None else f"can be written by {writer}"


def faults_above(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders above `path` that another user could change, to replace `path`, each with a reason; nearest first.

    In a folder with the sticky bit, such as ``/tmp``, only the owners of an entry and of the folder can rename the entry.
    """
    for folder in path.absolute().parents:
        status = folder.stat()
        owner, writer = foreign_owner(status), foreign_writers(status)
        if owner is not None:
            yield folder, f"belongs to the user {owner}"
        if writer is not None and not status.st_mode & stat.S_ISVTX:
            yield folder, f"can be written by {writer}"


def _is_own_group(group: int) -> bool:
    """Return whether a group is this user's primary group or root's, has the name of its user, and has no other members."""
    if group not in (os.getegid(), ROOT):
        return False
    user = _name(pwd.getpwuid, os.geteuid())
    try:
        entry = grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name in (user, "root") and set(entry.gr_mem) <= {user, "root"}


def _name(entry_of: Callable[[int], tuple[Any, ...]], number: int) -> str:
    with suppress(KeyError):
        return str(entry_of(number)[0])
    return str(number)
