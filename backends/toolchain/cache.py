"""Cache of built files.

An entry is used only if its contents still have the digest that was recorded when it was built. If the cache grows too large, the entries
that were not used for the longest time are deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from snnc.compiler.files.cache import cache_dir, reporting_write_errors
from snnc.compiler.files.ownership import fault_of

DIGEST_FILE: Final = ".digest"
SETTLED: Final = 1_000_000_000
"""Nanoseconds after which a further change of a file gives it a different time stamp on any file system."""
KINDS: Final = ("precompiled-*", "object-*", "project-*", "cpu-*", "cuda-*", "codelets/[!.]*", "programs/[!.]*")
"""Patterns of the entries that may be deleted; not of the emulator's libraries, because programs load them long after snnc found them."""
LIMIT: Final = 2 * 2**30
"""Maximum size of all entries of :data:`KINDS` together, in bytes."""
GRACE: Final = 3600.0
"""Seconds for which an entry is kept after its last use, because a process may be about to read it; also the time between two checks."""
_STAMP: Final = ".trimmed"
"""File whose time stamp is the time of the last check of the cache's size."""


def cached_file(name: str, file: str, build: Callable[[Path], None]) -> Path:
    """Return the path of `file` in the cache entry (a folder) `name`; build the entry if it is missing or was changed since it was built.

    The name contains a digest of everything on which the file depends. `build` writes the file, and possibly others, into the empty folder
    that it gets.
    """
    cache = cache_dir()
    target = cache / name
    if (target / file).exists() and is_unchanged(target):
        with suppress(OSError):  # the cache may be read-only
            os.utime(target)
        return target / file
    with reporting_write_errors(cache), build_lock(target):
        if not ((target / file).exists() and is_unchanged(target)):
            if os.path.lexists(target):
                delete_folder(target)
            _fill(target, build)
    trim(cache)
    return target / file


def _fill(target: Path, build: Callable[[Path], None]) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        build(scratch)
        record_digest(scratch)
        try:
            scratch.rename(target)
        except OSError:
            if not target.exists():  # otherwise another process was first
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def build_lock(target: Path) -> Iterator[None]:
    """Hold the lock of `target`: if several processes need the same result at once, one builds it and the others wait."""
    target.parent.mkdir(mode=0o700, exist_ok=True)
    path = target.parent / f".{target.name}.lock"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def record_digest(folder: Path) -> None:
    """Record a digest of a folder's contents, after making the folder readable and writable for its owner only."""
    for path in (folder, *_paths(folder)):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o600)
    content = f"{_digest(folder)}\n"
    (folder / DIGEST_FILE).touch(0o600)
    (folder / DIGEST_FILE).write_text(content)


def is_unchanged(folder: Path) -> bool:
    """Return whether a folder's contents are unchanged since :func:`record_digest`, and no other user can write to it.

    Computing a digest takes long for precompiled headers. Therefore, a process computes it again only if sizes or time stamps changed, or
    if the last change was less than :data:`SETTLED` ago.
    """
    try:
        paths = (folder, *_paths(folder))
        if any(fault_of(path) is not None for path in paths):
            return False
        return (folder / DIGEST_FILE).read_bytes() == f"{_current_digest(folder, paths)}\n".encode()
    except OSError:
        return False


def _current_digest(folder: Path, paths: tuple[Path, ...]) -> str:
    stats = [path.lstat() for path in paths if path != folder]  # each use of an entry updates the time stamp of its folder
    if time.time_ns() - max(stat.st_ctime_ns for stat in stats) < SETTLED:
        return _digest(folder)
    return _known_digest(folder, tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for stat in stats))


@lru_cache(maxsize=256)
def _known_digest(folder: Path, _states: tuple[tuple[int, ...], ...]) -> str:
    return _digest(folder)


def _digest(folder: Path) -> str:
    total = hashlib.blake2b(digest_size=32)
    for path in _paths(folder):
        name = path.relative_to(folder).as_posix()
        if name == DIGEST_FILE or (path.is_dir() and not path.is_symlink()):
            continue
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        total.update(f"{len(name)} {name} {path.is_symlink()} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def _paths(folder: Path) -> Iterator[Path]:
    """Yield the paths of all files, links and folders in a folder and its subfolders, sorted by name; links are not followed."""
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        yield Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _paths(Path(entry.path))


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
