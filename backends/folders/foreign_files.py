"""Files in a project's folder that snnc did not write, carried over to the folder that replaces it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from snnc.backends.folders.manifest import BEST, TRAINED, digest_of


@dataclass(frozen=True)
class RetainedFiles:
    """Files of a replaced folder that were moved aside, as paths in the new one.

    Attributes
    ----------
    trained
        Trained weights of the old project: the last, the best, both, or neither.
    edited
        Files that snnc wrote and the user changed.
    dropped
        Whether trained weights existed and were dropped.
    """

    trained: tuple[Path, ...] = ()
    edited: tuple[Path, ...] = ()
    dropped: bool = False


def retain_foreign_files(old: Path, new: Path, own: Mapping[str, str | None], keep_trained: bool) -> RetainedFiles:
    """Copy to `new` the files of `old` that the user added or changed, and the trained weights; `old` does not change.

    A file that snnc did not write keeps its path. Changed files, trained weights, and files whose path is taken in the new project go
    to ``before-1/`` (``before-2/`` …). Links are not followed. Files become hard links if possible.

    Parameters
    ----------
    old, new
        The replaced folder, and its replacement.
    own
        See :func:`snnc.backends.folders.manifest.written_files`.
    keep_trained
        Whether trained weights are kept.

    Raises
    ------
    OSError
        A file cannot be kept.
    """
    aside = _unused(old, new)
    trained, edited, dropped = list[Path](), list[Path](), False
    for path in _leaves(old):
        name = path.relative_to(old).as_posix()
        if name in (TRAINED, BEST):
            dropped = not keep_trained
            if keep_trained:
                trained.append(_put(path, aside / name))
        elif path.is_dir() and not path.is_symlink() and (new / name).is_dir():
            continue  # an empty folder that also exists in the new one
        elif name not in own:
            _put(path, new / name if _is_free(new, name) else aside / name)
        elif not _is_as_written(path, own[name]):
            edited.append(_put(path, aside / name))
    return RetainedFiles(tuple(trained), tuple(edited), dropped)


def remove(folder: Path) -> None:
    """Delete a replaced folder, including read-only files."""
    for root, names, _ in os.walk(folder):
        for name in (".", *names):
            with suppress(OSError):
                place = Path(root) / name
                if not place.is_symlink():
                    place.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _leaves(folder: Path) -> Iterator[Path]:
    """Yield all entries except nonempty folders: files, links, empty folders and others."""
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False) and any(path.iterdir()):
            yield from _leaves(path)
        else:
            yield path


def _is_as_written(path: Path, digest: str | None) -> bool:
    """Return whether a file is unchanged since snnc wrote it; without a digest, any regular file counts as unchanged."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return False
    return digest is None or digest_of(path) == digest


def _is_free(new: Path, name: str) -> bool:
    """Return whether a path can be created in `new`: it does not exist, and no parent is a file."""
    place = new / name
    above = [p for p in place.parents if p.is_relative_to(new)]
    return not os.path.lexists(place) and all(p.is_dir() and not p.is_symlink() for p in above if os.path.lexists(p))


def _put(path: Path, place: Path) -> Path:
    """Link or copy a file to `place`; for a folder, create an empty one."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        place.mkdir()
        shutil.copystat(path, place)
        return place
    try:
        os.link(path, place, follow_symlinks=False)
    except OSError:
        if not (path.is_symlink() or path.is_file()):
            raise
        shutil.copy2(path, place, follow_symlinks=False)
    return place


def _unused(old: Path, new: Path) -> Path:
    number = 1
    while os.path.lexists(old / f"before-{number}") or os.path.lexists(new / f"before-{number}"):
        number += 1
    return new / f"before-{number}"
