"""Limit the size of the cache: the least recently used entries are deleted first."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

KINDS: Final = ("precompiled-*", "object-*", "project-*", "cpu-*", "cuda-*", "codelets/[!.]*", "programs/[!.]*")
"""Patterns of entries that can be deleted: a process reads them soon after it finds them. The emulator's libraries are never deleted."""
LIMIT: Final = 2 * 2**30
"""Maximum size of all these entries together, in bytes."""
GRACE: Final = 3600.0
"""Seconds after its last use for which an entry is kept, because another process may be about to read it. Also the interval of checks."""
_STAMP: Final = ".trimmed"


def trim(cache: Path, *, limit: int = LIMIT, grace: float = GRACE) -> list[str]:
    """Delete leftovers of dead builds, and the least recently used entries until at most `limit` bytes are left; return the deleted names.

    Entries used in the last `grace` seconds are kept. If the last check is more recent than that, nothing is deleted.

    Parameters
    ----------
    cache
        The cache folder; the time stamp of an entry's folder is that of its last use (see `toolchain.cache`).
    limit
        Maximum size of the entries of :data:`KINDS`, in bytes.
    grace
        Seconds for which an entry is kept after its last use, and between two checks.
    """
    stamp, now = cache / _STAMP, time.time()
    if stamp.exists() and now - stamp.stat().st_mtime < grace:
        return []
    stamp.touch(mode=0o600)
    waste = [(path, _used(path)) for folder in ("", "codelets", "programs") for path in (cache / folder).glob(".*-*") if path.is_dir()]
    found = sorted((_used(path), path, _bytes(path)) for kind in KINDS for path in cache.glob(kind))
    excess = sum(size for _, _, size in found) - limit
    deleted = [path for path, used in waste if now - used >= grace]
    for used, path, size in found:
        if excess <= 0 or now - used < grace:
            break
        excess -= size
        deleted.append(path)
    for path in deleted:
        delete_folder(path)
    return [path.name for path in deleted]


def _used(path: Path) -> float:
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
