"""Find and delete snnc's cache and leftovers of killed processes, recognised by names that only snnc uses."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from snnc.compiler.files.cache import cache_dir
from snnc.compiler.files.temporary import TemporaryFolder, abandoned, abandoned_files

_DIGEST: Final = "[0-9a-f]{16,128}"
_BUILT: Final = f"(?:precompiled|object|project|cpu|cuda|cuda-host|emulator|popart)-{_DIGEST}"
CACHE_NAMES: Final = {
    "": re.compile(rf"{_BUILT}|\.{_BUILT}-[a-z0-9_]{{8}}|\.{_BUILT}\.lock|\.trimmed"),
    **dict.fromkeys(("codelets", "programs"), re.compile(rf"{_DIGEST}|\.{_DIGEST}(?:-[a-z0-9_]{{8}}|\.lock)")),
    **dict.fromkeys(("kernels", "ways"), re.compile(rf"{_DIGEST}\.json|\.{_DIGEST}\.json-[a-z0-9_]{{8}}")),
}
"""Patterns of names that snnc uses in each folder of its cache; other files are not touched."""


@dataclass(frozen=True)
class Waste:
    """A file or folder to delete; `what` is ``"cache"`` or ``"leftover"``."""

    what: str
    path: Path
    bytes: int


def in_cache() -> tuple[list[Waste], int]:
    """Return the entries of the cache, without those that a process is building, and the number of the latter."""
    cache = cache_dir()
    entries: list[Waste] = []
    busy = 0
    for folder, pattern in CACHE_NAMES.items():
        building = _building(cache / folder)
        for path in _entries(cache / folder):
            if not pattern.fullmatch(path.name):
                continue
            if any(path.name.removeprefix(".").startswith(name) for name in building):
                busy += 1
            else:
                entries.append(Waste("cache", path, size_of(path)))
    return entries, busy


def left_over(folders: tuple[Path, ...] = ()) -> list[Waste]:
    """Return leftovers of ended processes in the system's temporary folder and in `folders`."""
    paths = [*abandoned()]
    for folder in folders:
        paths += [*abandoned_files(folder), *abandoned_files(folder / "model"), *abandoned(folder, ".")]
    return [Waste("leftover", path, size_of(path)) for path in dict.fromkeys(paths)]


def remove(waste: list[Waste]) -> list[Waste]:
    """Delete files and folders and return the deleted ones; folders are renamed first, so that no process sees an incomplete one."""
    deleted = []
    for one in waste:
        with suppress(OSError):  # another process deleted it, or permission is missing
            if one.path.is_dir() and not one.path.is_symlink():
                aside = TemporaryFolder(one.path.parent, ".snnc-clean-")
                try:
                    one.path.rename(aside.path / "gone")
                finally:
                    aside.close()
            else:
                one.path.unlink()
            deleted.append(one)
    return deleted


def size_of(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    total = 0
    with suppress(OSError):
        total = path.lstat().st_size if not path.is_dir() or path.is_symlink() else 0
    for above, _, files in os.walk(path):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(above, name)).st_size
    return total


def _entries(folder: Path) -> list[Path]:
    if folder.is_symlink():
        return []
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _building(folder: Path) -> set[str]:
    return {path.name.removeprefix(".").removesuffix(".lock") for path in _entries(folder) if path.name.endswith(".lock") and _held(path)}


def _held(lock: Path) -> bool:
    try:
        with lock.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
