"""Files that stay complete even if a write is interrupted: by a killed process, a power failure or a full disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_durably(path: Path, data: bytes, part: Path) -> None:
    """Write `data` to the temporary file `part`, wait until it is on disk, and rename it to `path`; both must be in one folder.

    If the file cannot be written, an OSError is raised, and an existing `path` is unchanged.
    """
    try:
        with open(part, "wb", opener=_without_links) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _without_links(path: str, flags: int) -> int:
    """Open a file, but not through a symbolic link that someone else may have put there."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
