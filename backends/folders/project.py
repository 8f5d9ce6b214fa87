"""Write output folders completely or not at all: a folder is written next to its destination, then renamed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from snnc.backends.folders.folder_lock import check_free, locked
from snnc.backends.folders.foreign_files import RetainedFiles, remove, retain_foreign_files
from snnc.backends.folders.manifest import TRAINED, write_manifest, written_files
from snnc.compiler.errors import SnncError
from snnc.compiler.files.exchange import exchange
from snnc.compiler.files.temporary import TemporaryFolder

Chunk: TypeAlias = bytes | memoryview


class OutputFolderError(SnncError, code="SNNC-E412"):
    """An output folder cannot be created or written."""


class DiskFullError(OutputFolderError, code="SNNC-E413"):
    """The disk has no space for an output folder."""


class ForeignFolderError(OutputFolderError, code="SNNC-E414"):
    """The output folder exists and is not an snnc project."""


def write_file(path: Path, chunks: Iterable[Chunk]) -> str:
    """Write a file chunk by chunk, and return its SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        for chunk in chunks:
            stream.write(chunk)
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def atomic_folder(folder: Path, keep_trained: bool = True) -> Iterator[Path]:
    """Yield an empty folder to fill; if the block ends without an error, rename it to `folder` with a manifest of its files.

    It replaces an older project. Files of that project that snnc did not write stay in place. Files that snnc wrote and a user changed,
    and with `keep_trained` trained weights, are moved to ``before-<n>/`` in `folder`, with a warning (see `retain_foreign_files`).

    Raises the errors of :func:`check_replaceable`, and a DiskFullError or OutputFolderError if the files cannot be written; an older
    project is then unchanged.
    """
    check_replaceable(folder)
    holder: TemporaryFolder | None = None
    try:
        folder = folder.resolve()  # the target of a link may be on a different disk
        folder.parent.mkdir(parents=True, exist_ok=True)
        holder = TemporaryFolder(folder.parent, f".{folder.name}.")
        temporary = holder.path / "project"
        temporary.mkdir()
        yield temporary
        _close_to_others(temporary)
        write_manifest(temporary)
        _put_in_place(temporary, folder, keep_trained)
    except OSError as error:
        raise _explain(folder, error) from None
    finally:
        if holder is not None:
            remove(holder.path)
            holder.close()


def _close_to_others(folder: Path) -> None:
    """Remove other users' write permission from a folder and its contents, which will be compiled and run."""
    for path in (folder, *folder.rglob("*")):
        mode = path.lstat().st_mode
        if mode & 0o022 and not path.is_symlink():
            path.chmod(stat.S_IMODE(mode) & ~0o022)


def check_replaceable(folder: Path) -> None:
    """Raise an error unless `folder` is missing, empty, or a project of snnc that can be replaced.

    The error is a ForeignFolderError for a file, or a folder that snnc did not write, a FolderInUseError if another process trains in the
    folder or replaces it, and an OutputFolderError if the folder cannot be read or written.
    """
    try:
        if not folder.is_symlink() and not folder.exists():
            return
        if not folder.is_dir():
            raise ForeignFolderError(f"{str(folder)!r} is a file; give a folder.")
        if any(folder.iterdir()) and written_files(folder) is None:
            raise ForeignFolderError(f"the folder {str(folder)!r} contains files but is not a project of snnc; give a new or empty folder.")
        if not os.access(folder, os.W_OK):
            raise OutputFolderError(f"the folder {str(folder)!r} is read-only; make it writable (chmod u+w), or give another.")
        check_free(folder)
    except OSError as error:
        raise _explain(folder, error) from None


def _put_in_place(temporary: Path, target: Path, keep_trained: bool) -> None:
    if not target.exists() or not any(target.iterdir()):
        temporary.rename(target)
        return
    with locked(target, "compiles"):
        written = written_files(target)
        if written is None:
            raise ForeignFolderError(f"the folder {str(target)!r} is no longer a project of snnc; nothing was written.")
        retained = retain_foreign_files(target, temporary, written, keep_trained)
        exchange(temporary, target)
    _warn_about(retained, temporary, target)


def _warn_about(retained: RetainedFiles, temporary: Path, target: Path) -> None:
    def place(path: Path) -> str:
        return str(target / path.relative_to(temporary))

    if retained.trained:
        text = f"the trained weights of the older project are now in {' and '.join(map(place, retained.trained))}; to continue from"
        warnings.warn(f"{text} one of them, copy it to {target / TRAINED} (if the network is the same).", UserWarning, stacklevel=2)
    if retained.dropped:
        warnings.warn(f"the trained weights of the project that was in {target} are deleted.", UserWarning, stacklevel=2)
    if retained.edited:
        files = ", ".join(map(place, retained.edited[:5])) + (" …" if len(retained.edited) > 5 else "")
        warnings.warn(f"{len(retained.edited)} changed files of the older project were moved: {files}", UserWarning, stacklevel=2)


def _explain(folder: Path, error: OSError) -> OutputFolderError:
    reason = (error.strerror or str(error)).lower()
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"the folder {str(folder)!r} cannot be written: {reason}; free some space or choose a different folder.")
    return OutputFolderError(f"the folder {str(folder)!r} cannot be written: {reason}; choose a folder that you may write to.")
