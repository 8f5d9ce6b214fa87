"""Limit the size of the cache: the least recently used entries are deleted first."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

KINDS: Final = ("precompiled-*", "object-*", "project-*", "cpu-*", "cuda-*", "codelets/[!.]*", "programs/[!.]*")
"""Patterns of the entries that may be deleted, without the emulator's libraries, which programs load long after snnc found them."""
LIMIT: Final = 2 * 2**30
"""Maximum size of all entries of :data:`KINDS` together, in bytes."""
GRACE: Final = 3600.0
"""Seconds for which an entry is kept after its last use, because a process may be about to read it; also the time between two checks."""
_STAMP: Final = ".trimmed"
"""File whose time stamp is the time of the last check."""


def trim(cache: Path, *, limit: int = LIMIT, grace: float = GRACE) -> list[str]:
    """Delete temporary folders of interrupted builds and, beyond `limit` bytes, the least recently used entries; return their names.

    An entry is kept for `grace` seconds after its last use, to which its folder's time stamp is set. If the last check
    was less than `grace` seconds ago, nothing is deleted.
    """
    stamp, now = cache / _STAMP, time.time()
    if stamp.exists() and now - stamp.stat().st_mtime < grace:
        return []
    stamp.touch(mode=0o600)
    waste = [(path, _used(path)) for folder in ("", "codelets", "programs") for path in (cache / folder).glob(".*-*") if path.is_dir()]
    entries = sorted((_used(path), path, _bytes(path)) for kind in KINDS for path in cache.glob(kind))
    excess = sum(size for _, _, size in entries) - limit
    deleted = [path for path, used in waste if now - used >= grace]
    for used, path, size in entries:
        if excess <= 0 or now - used < grace:
            break
        excess -= size
        deleted.append(path)
    for path in deleted:
        delete_folder(path)
    return [path.name for path in deleted]


def _used(path: Path) -> float:
    """Return the time of the last use of an entry, in seconds since 1970."""
    try:
        return path.stat().st_mtime
    except OSError:  # another process deleted it
        return time.time()


def _bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total


def delete_folder(folder: Path) -> None:
    """Delete a folder after renaming it, so that no process finds it half deleted."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    with suppress(OSError):  # another process was faster
        folder.rename(temporary / "gone")
    shutil.rmtree(temporary, ignore_errors=True)
