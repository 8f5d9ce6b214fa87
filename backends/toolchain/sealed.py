"""Cache folders with a digest of all their contents, which is checked at every use."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from snnc.compiler.files.ownership import fault_of

SEAL: Final = ".digest"
"""Name of the file that holds the digest."""


def seal(folder: Path) -> None:
    """Make a folder private, whatever the umask, and record a digest of its contents."""
    for path in (folder, *_paths(folder)):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o600)
    content = f"{_digest(folder)}\n"
    handle = os.open(folder / SEAL, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(content)


def is_sealed(folder: Path) -> bool:
    """Return whether a folder's contents are unchanged since :func:`seal`, and no other user could have written them."""
    try:
        if any(fault_of(path) is not None for path in (folder, *_paths(folder))):
            return False
        return (folder / SEAL).read_bytes() == f"{_digest(folder)}\n".encode()
    except OSError:
        return False


def _digest(folder: Path) -> str:
    total = hashlib.blake2b(digest_size=32)
    for path in _paths(folder):
        name = path.relative_to(folder).as_posix()
        if name == SEAL or (path.is_dir() and not path.is_symlink()):
            continue
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        total.update(f"{len(name)} {name} {path.is_symlink()} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def _paths(folder: Path) -> Iterator[Path]:
    """All entries of a folder, always in the same order; links are not followed."""
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        yield Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _paths(Path(entry.path))
