"""Owners and permissions of files and folders: files that another user could have written are neither loaded nor executed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

ROOT: Final = 0
"""User id of root, who can change any file."""
_OTHERS: Final = stat.S_IWOTH
_GROUP: Final = stat.S_IWGRP


def foreign_owner(status: os.stat_result) -> str | None:
    """Return the name of a file's owner if it is neither this user nor root; else None."""
    return None if status.st_uid in (os.geteuid(), ROOT) else _user_name(status.st_uid)


def foreign_writers(status: os.stat_result) -> str | None:
    """Return who besides its owner may write a file: ``"everybody"`` or ``"the group …"``; None: only trusted users."""
    if stat.S_ISLNK(status.st_mode):  # the permissions of a link have no effect
        return None
    if status.st_mode & _OTHERS:
        return "everybody"
    if status.st_mode & _GROUP and not _is_own_group(status.st_gid):
        return f"the group {_group_name(status.st_gid)}"
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
    import grp

    if group not in (os.getegid(), ROOT):
        return False
    user = _user_name(os.geteuid())
    try:
        entry = grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name in (user, "root") and set(entry.gr_mem) <= {user, "root"}


def _user_name(user: int) -> str:
    """Return the name of a user, or the number as text if no such user exists."""
    import pwd

    with suppress(KeyError):
        return pwd.getpwuid(user).pw_name
    return str(user)


def _group_name(group: int) -> str:
    """Return the name of a group, or the number as text if no such group exists."""
    import grp

    with suppress(KeyError):
        return grp.getgrgid(group).gr_name
    return str(group)
