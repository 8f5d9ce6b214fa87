"""Where snnc keeps what it made and can make again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder that holds made things, which is made where it is missing.

    Raises
    ------
    CacheFolderError
        It cannot be made, or there is no home folder for it.
    """
    folder = cache_folder()
    with keeping(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def cache_folder() -> Path:
    """Return where made things are held: ``$SNNC_CACHE``, else ``~/.cache/snnc``.

    Raises
    ------
    CacheFolderError
        There is no home folder for it.
    """
    if chosen := os.environ.get("SNNC_CACHE"):
        return Path(chosen)
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "snnc"
    try:
        return Path.home() / ".cache" / "snnc"
    except RuntimeError:  # as in a container that runs as a number
        from snnc.compiler.errors import CacheFolderError

        raise CacheFolderError(
            f"snnc keeps what it builds in the home folder, and there is none: HOME is not set, and user {os.getuid()} has no entry in "
            "/etc/passwd; name a folder for it: SNNC_CACHE=FOLDER."
        ) from None


@contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """Tell what to do where `folder`, or something in it, cannot be written.

    Raises
    ------
    CacheFolderError
        In place of any OSError.
    """
    try:
        yield
    except OSError as error:
        from snnc.compiler.errors import CacheFolderError

        copied = isinstance(error, shutil.Error) and isinstance(error.args[0], list)
        reason = error.args[0][0][-1] if copied else error.strerror or str(error)
        raise CacheFolderError(
            f"snnc keeps what it builds in {str(folder)!r}, which cannot be written: {reason}; make room there, or name another folder: "
            "SNNC_CACHE=FOLDER."
        ) from None
