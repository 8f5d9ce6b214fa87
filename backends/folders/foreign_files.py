"""Copy files that snnc did not write from a project's folder to the folder that replaces it."""

from __future__ import annotations

import itertools
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
    """Files of a replaced folder that did not keep their paths."""

    trained: tuple[Path, ...] = ()
    """New paths of the trained weights: the last, the best, both, or neither."""
    edited: tuple[Path, ...] = ()
    """New paths of files that snnc wrote and the user changed."""
    dropped: bool = False
    """Whether trained weights were deleted."""


def retain_foreign_files(old: Path, new: Path, written: Mapping[str, str | None], keep_trained: bool) -> RetainedFiles:
    """Copy to `new` what the user added to `old` or changed there and, with `keep_trained`, the trained weights; `old` does not change.

    `written` is the result of :func:`snnc.backends.folders.manifest.written_files` for `old`. A file that snnc did not write keeps its path
    if that is free. All others go to ``before-1/`` (or ``before-2/`` …). Files become hard links if possible; symbolic links are not
    followed. Raises an OSError if a file cannot be copied.
    """
    unused = (f"before-{n}" for n in itertools.count(1) if not any(os.path.lexists(f / f"before-{n}") for f in (old, new)))
    aside = new / next(unused)
    trained, edited, dropped = list[Path](), list[Path](), False
    for path in _leaves(old):
        name = path.relative_to(old).as_posix()
        if name in (TRAINED, BEST):
            dropped = not keep_trained
            if keep_trained:
                trained.append(_put(path, aside / name))
        elif path.is_dir() and not path.is_symlink() and (new / name).is_dir():
            continue  # an empty folder that also exists in the new one
        elif name not in written:
            _put(path, new / name if _is_free(new, name) else aside / name)
        elif not _is_as_written(path, written[name]):
            edited.append(_put(path, aside / name))
    return RetainedFiles(tuple(trained), tuple(edited), dropped)


def remove(folder: Path) -> None:
    """Delete a folder, including read-only contents; files that cannot be deleted stay."""
    for root, names, _ in os.walk(folder):
        for name in (".", *names):
            with suppress(OSError):
                place = Path(root) / name
                if not place.is_symlink():
                    place.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _leaves(folder: Path) -> Iterator[Path]:
    """Yield the paths of everything in a folder and its subfolders except nonempty folders."""
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False) and any(path.iterdir()):
            yield from _leaves(path)
        else:
            yield path


def _is_as_written(path: Path, digest: str | None) -> bool:
    """Return whether a path is a regular file with this digest; None: with any content."""
    return stat.S_ISREG(path.lstat().st_mode) and (digest is None or digest_of(path) == digest)


def _is_free(new: Path, name: str) -> bool:
    """Return whether a path can be created in `new`: it does not exist, and no parent is a file or link."""
    place = new / name
    above = [p for p in place.parents if p.is_relative_to(new)]
    return not os.path.lexists(place) and all(p.is_dir() and not p.is_symlink() for p in above if os.path.lexists(p))


def _put(path: Path, place: Path) -> Path:
    """Link or copy a file, or create an empty folder, at `place`; return `place`."""
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
