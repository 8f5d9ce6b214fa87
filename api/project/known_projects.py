"""List of projects that this user compiled or trusted, stored as digests of their manifests (lists of files)."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from snnc.backends.folders.manifest import MANIFEST, digest_of
from snnc.compiler.errors import SnncError
from snnc.compiler.files.cache import cache_dir, make_private
from snnc.compiler.files.ownership import fault_of, faults_above

_NAME: Final = "known-projects"
MAX_PROJECTS: Final = 20_000
"""Maximum number of projects in the list; a full list is reduced to its newer half."""


def remember(folder: Path) -> None:
    """Record that this user compiled or trusts the project in `folder`; do nothing if no list can be written."""
    line = f"{digest_of(folder / MANIFEST)}\n".encode()
    for place in _places():
        with suppress(OSError, SnncError):
            _append(place, line)
            return


def is_known(folder: Path) -> bool:
    """Return whether this user compiled or trusted the project in `folder`, judged by its manifest."""
    try:
        line = digest_of(folder / MANIFEST).encode()
    except OSError:
        return False
    return any(line in _read(place) for place in _places())


def _places() -> list[Path]:
    """Return the files that may contain the list: in the user's state folder (preferred), and in the cache."""
    places = []
    with suppress(RuntimeError):  # no home folder
        places.append(Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "snnc" / _NAME)
    with suppress(SnncError, RuntimeError, OSError):
        places.append(cache_dir() / _NAME)
    return places


def _read(place: Path) -> list[bytes]:
    """Return the lines of a file, or none if other users can write it."""
    try:
        if fault_of(place) is not None or any(faults_above(place)):
            return []
        return place.read_bytes().split()
    except OSError:
        return []


def _append(place: Path, line: bytes) -> None:
    if not place.parent.is_dir():
        make_private(place.parent)
    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "r+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        os.fchmod(handle, 0o600)
        lines = stream.read().splitlines(keepends=True)
        if line in lines[-MAX_PROJECTS:]:
            return
        if len(lines) >= MAX_PROJECTS:
            stream.truncate(0)
            stream.write(b"".join(lines[-MAX_PROJECTS // 2 :]))
        stream.write(line)
