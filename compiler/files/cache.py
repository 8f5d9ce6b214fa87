"""Folder of snnc's cache: built files and other results, which snnc can generate again.

:func:`cache_dir` makes and checks the folder, :func:`cache_folder` only names it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from snnc.compiler.errors import CacheFolderError, UnsafeCacheError
from snnc.compiler.files.ownership import fault_of, faults_above

_OWN_ENTRIES: Final = (
    "precompiled-", "object-", "project-", "cpu-", "cuda-", "emulator-", "popart-", "codelets", "programs", "kernels", "known-projects",
    "trimmed", "ways",
)  # fmt: skip
"""Prefixes of file names in a folder that contains only snnc's cache; a temporary file has a dot before the prefix."""
_DIGEST_BYTES: Final = 32


def cache_dir() -> Path:
    """Return the folder of built files, creating it if it is missing.

    Its contents are loaded and executed, so no other user except root may be able to change it or to replace a folder above it. A folder
    that cannot be created raises a CacheFolderError; one that another user could write to raises an UnsafeCacheError.
    """
    folder = cache_folder()
    with reporting_write_errors(folder):
        if not folder.is_dir():
            make_private(folder)
        _check(folder)
    return folder


def cache_folder() -> Path:
    """Return the path of the cache: ``$SNNC_CACHE``, ``$XDG_CACHE_HOME/snnc`` or ``~/.cache/snnc``."""
    if chosen := os.environ.get("SNNC_CACHE"):
        return Path(chosen)
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "snnc"
    try:
        return Path.home() / ".cache" / "snnc"
    except RuntimeError:  # as in a container that runs under a user id without an entry
        raise CacheFolderError(
            f"snnc stores its builds in the home folder, which does not exist: HOME is not set, and user {os.getuid()} has no entry in "
            "/etc/passwd; set a different folder: SNNC_CACHE=FOLDER."
        ) from None


def make_private(folder: Path) -> None:
    """Create a private folder and its missing parents, independent of the umask."""
    for missing in reversed([p for p in folder.absolute().parents if not p.exists()]):
        missing.mkdir(mode=0o755, exist_ok=True)
        missing.chmod(missing.stat().st_mode & 0o755)
    folder.mkdir(mode=0o700, exist_ok=True)


def _check(folder: Path) -> None:
    """Make a cache of this user private; raise an error for one that others could have written to."""
    real = folder.resolve()
    status = real.stat()
    shared = status.st_mode & stat.S_ISVTX  # such as /tmp
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077 and not shared and _is_cache(real):
        real.chmod(0o700)
    fault, above = fault_of(real), next(faults_above(real), None)
    if fault is None and above is None:
        return
    where, why = (real, fault) if fault is not None else above or (real, "")
    raise UnsafeCacheError(
        f"snnc executes files in {str(folder)!r}, but {str(where)!r} {why}; make it your own and private (chown, chmod go-w), "
        "or set a folder of your own: SNNC_CACHE=FOLDER."
    )


def _is_cache(folder: Path) -> bool:
    """Return whether a folder contains only files of snnc's cache; the permissions of other folders are not changed."""
    return all(entry.name.removeprefix(".").startswith(_OWN_ENTRIES) for entry in os.scandir(folder))


@contextmanager
def reporting_write_errors(folder: Path) -> Iterator[None]:
    """Replace any OSError by a CacheFolderError with advice: `folder`, or something in it, cannot be written."""
    try:
        yield
    except OSError as error:
        # shutil.copytree lists (source, destination, reason) of each file that it could not copy.
        listed = isinstance(error, shutil.Error) and isinstance(error.args[0], list)
        reason = error.args[0][0][-1] if listed else error.strerror or str(error)
        raise CacheFolderError(
            f"snnc stores its builds in {str(folder)!r}, which cannot be written: {reason}; free some space, or set a different folder: "
            "SNNC_CACHE=FOLDER."
        ) from None


def write_checked(path: Path, content: bytes) -> None:
    """Write a private file, completely or not at all; the file starts with a digest, which :func:`read_checked` checks."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_digest(content) + b"\n" + content)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def read_checked(path: Path, largest: int) -> bytes | None:
    """Return the contents written by :func:`write_checked`; None if the file is damaged, too large, or writable by other users.

    An OSError is raised if it cannot be read.
    """
    with path.open("rb") as stream:
        data = stream.read(largest + 1)
    digest, _, content = data.partition(b"\n")
    if len(data) > largest or fault_of(path) is not None or digest != _digest(content):
        return None
    return content


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest().encode()
