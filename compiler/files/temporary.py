"""Temporary folders and files, deleted by the process that created them or, if it was killed, by a later process.

Each folder contains a file that its process keeps locked; a temporary file is locked itself. The system releases the lock however the
process ends. A folder whose file is not locked, or a temporary file that is not locked, belongs to a killed process. It is deleted by the
next process that creates a folder with the same prefix or a temporary file for the same path, or by ``snnc clean``.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from snnc.compiler.errors import TemporaryFolderError

PREFIX: Final = "snnc-"
"""Prefix of snnc's folders among the system's temporary folders."""
MARK: Final = ".snnc-temporary"
"""The locked file in a temporary folder."""
SUFFIX: Final = ".snnc-temporary"
"""Suffix of temporary files that replace others when they are complete."""


class TemporaryFolder:
    """A new folder, deleted by :meth:`close`, with the object, or when the process ends; child processes never delete it.

    Its name begins with `prefix`. `above` is its parent folder, by default the system's folder for temporary files, without which a
    TemporaryFolderError is raised; an OSError is raised if the folder cannot be created.
    """

    def __init__(self, above: Path | None = None, prefix: str = PREFIX) -> None:
        remove_abandoned(above, PREFIX if above is None else prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=above))
        try:
            handle = _locked_mark(self.path)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        self._finalizer = weakref.finalize(self, _close, self.path, handle, os.getpid())

    def keep(self) -> Path:
        """Remove the mark, so that the folder is kept; return its path."""
        (self.path / MARK).unlink(missing_ok=True)
        detached = self._finalizer.detach()
        if detached is not None:
            _, _, (_, handle, _), _ = detached  # the arguments of _close
            os.close(handle)
        return self.path

    def close(self) -> None:
        """Delete the folder; a second call does nothing."""
        self._finalizer()


@contextmanager
def temporary_folder(prefix: str = PREFIX, above: Path | None = None) -> Iterator[Path]:
    """Yield a folder for the duration of a block."""
    folder = TemporaryFolder(above, prefix)
    try:
        yield folder.path
    finally:
        folder.close()


@contextmanager
def temporary_file(path: Path) -> Iterator[tuple[int, Path]]:
    """Yield the handle and the path of a new file next to `path`; if the block does not rename the file to `path`, it is deleted."""
    for file in path.parent.glob(f".{glob.escape(path.name)}.*{SUFFIX}"):
        if _is_free(file):
            file.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=SUFFIX, dir=path.parent)
    try:
        with suppress(OSError):  # without file locks, abandoned files are not removed
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle, Path(name)
    finally:
        with suppress(OSError):
            os.close(handle)
        Path(name).unlink(missing_ok=True)


def abandoned(above: Path | None = None, prefix: str = PREFIX) -> list[Path]:
    """Return the folders of this user that a process left when it was killed, sorted by name."""
    root = _system_folder() if above is None else above
    try:
        folders = [Path(entry.path) for entry in os.scandir(root) if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(folder for folder in folders if _is_abandoned(folder))


def _system_folder() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # as in a container whose file system is read-only
        raise TemporaryFolderError(
            "no folder for temporary files can be written: snnc looked at TMPDIR, TEMP, TMP, /tmp, /var/tmp, /usr/tmp and the current one; "
            "set another: TMPDIR=FOLDER."
        ) from None


def abandoned_files(above: Path) -> list[Path]:
    """Return the temporary files in a folder that a process left when it was killed."""
    with suppress(OSError):
        return sorted(file for file in above.glob(f".*{SUFFIX}") if file.name != MARK and _is_free(file))
    return []


def remove_abandoned(above: Path | None = None, prefix: str = PREFIX) -> None:
    """Delete the folders of :func:`abandoned`."""
    for folder in abandoned(above, prefix):
        shutil.rmtree(folder, ignore_errors=True)


def _locked_mark(folder: Path) -> int:
    """Create the mark, locked before it gets its name, so that it is never seen unlocked."""
    handle, name = tempfile.mkstemp(dir=folder)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Path(name).rename(folder / MARK)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _close(folder: Path, handle: int, process: int) -> None:
    """Delete a folder, unless this is a child of the process that created it, and close its locked file."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.close(handle)


def _is_abandoned(folder: Path) -> bool:
    with suppress(OSError):
        return folder.lstat().st_uid == os.getuid() and _is_free(folder / MARK)
    return False


def _is_free(file: Path) -> bool:
    """Return whether a file of this user is unlocked."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        if os.fstat(handle).st_uid != os.getuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
