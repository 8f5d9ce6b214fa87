"""Checks before a project's program is compiled and executed: who compiled it, and whether snnc emits the same sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from snnc.backends.folders.manifest import FORMAT, MANIFEST, digest_of, newer_format, read_manifest
from snnc.compiler.files.cache import cache_dir
from snnc.compiler.files.ownership import fault_of, faults_above
from snnc.compiler.files.temporary import temporary_folder
from snnc.errors import (
    ChangedSourcesError,
    DamagedProjectError,
    NewerProjectError,
    ProjectFolderError,
    UnsafeProjectError,
    UntrustedProjectError,
)
from snnc.project.graph_file import PROGRAM
from snnc.project.known_projects import is_known, remember

_SOURCES: Final = frozenset({".cpp", ".hpp", ".h", ".cu", ".cuh", ".py"})
"""Suffixes of files whose contents are compiled or executed."""
_DATA: Final = frozenset({".json", ".bin", ".npz", ".safetensors"})
"""Suffixes of data files."""
_ADVICE: Final = "--trust, in Python trust=True"
"""How to allow the execution, for messages."""


def check_data(folder: Path, only: str | None = None) -> None:
    """Check that a project's data files, or with `only` this one file, are as compiled."""
    listed = _listed(folder)
    changed = _changed(folder, listed if only is None else {only: listed.get(only, "")}, _DATA)
    if changed:
        raise DamagedProjectError(
            f"{_few(changed)} of the project {str(folder)!r} {_is(changed)} not as compiled; compile the model again. (To use other "
            "weights, call Session.load, or train.)"
        )


def has_known_program(folder: Path) -> bool:
    """Return whether a project has a stored step program whose files are all listed, and this user compiled or trusted the project."""
    listed = _listed(folder)
    return (
        f"model/{PROGRAM[0]}" in listed
        and is_known(folder)
        and (f"model/{PROGRAM[1]}" in listed or not (folder / "model" / PROGRAM[1]).exists())
    )


def check_trusted(folder: Path, trust: bool) -> None:
    """Refuse to execute the program of a project unless this user compiled it or `trust` allows it.

    A project that `trust` allows is remembered and needs no further permission, unless its sources differ from its list of files.

    Raise UnsafeProjectError if another user can change the folder; ChangedSourcesError if its sources have changed since the compilation,
    or somebody else compiled it and snnc emits different ones for the model; UntrustedProjectError if its sources are as emitted, but
    somebody else compiled it; CacheFolderError if there is no folder for the list of known projects.
    """
    folder = folder.resolve()
    listed = _listed(folder)
    if not trust:
        _check_rights(folder, listed)
    changed = _changed(folder, listed, _SOURCES)
    if changed and not trust:
        raise ChangedSourcesError(
            f"{_few(changed)} of the project {str(folder)!r} {_is(changed)} not as compiled; snnc would compile and execute "
            f"{_them(changed)}. Compile the model again, or, if the change is yours, allow it: {_ADVICE}."
        )
    if changed or is_known(folder):
        return
    if not trust:
        cache_dir()  # without a cache, projects can be neither remembered nor built
        _refuse_unknown(folder, listed)
    remember(folder)


def _refuse_unknown(folder: Path, listed: Mapping[str, str]) -> None:
    foreign = _not_emitted(folder, listed)
    if foreign:
        raise ChangedSourcesError(
            f"the project {str(folder)!r} was compiled by somebody else, and {_few(foreign)} {_is(foreign)} not what this snnc emits for "
            f"its model: somebody changed {_them(foreign)}, or another version of snnc wrote {_them(foreign)}. Compile the model yourself "
            f"(snnc compile {folder} -o DIR), or read {_them(foreign)} and allow {_them(foreign)} to be executed: {_ADVICE}."
        )
    raise UntrustedProjectError(
        f"the project {str(folder)!r} was compiled by somebody else, or before its folder was copied from elsewhere; snnc compiles and "
        f"executes its C++, which is what this snnc emits for the model. Allow it once: {_ADVICE}."
    )


def _not_emitted(folder: Path, listed: Mapping[str, str]) -> list[str]:
    """Return the files that differ from those that snnc emits for the project; data files other than ``.bin`` are not compared."""
    from snnc.driver.folder import read_project
    from snnc.driver.stages import emit_project

    with temporary_folder() as above:
        again = Path(above) / "project"
        emit_project(read_project(folder), again)
        emitted = {p.relative_to(again).as_posix(): digest_of(p) for p in again.rglob("*") if p.is_file() and p.name != MANIFEST}
    compared = {name for name in {*listed, *emitted} if PurePosixPath(name).suffix in _SOURCES or name.endswith(".bin")}
    return sorted(name for name in compared if listed.get(name) != emitted.get(name))


def _check_rights(folder: Path, listed: Iterable[str]) -> None:
    """Refuse a project if one of its folders or files is a link, belongs to another user, or can be written by one.

    A folder above the project may belong to another user, but must not be writable by other users.
    """
    inside = {folder / parent for name in listed for parent in PurePosixPath(name).parents} | {folder / name for name in listed}
    for path in sorted({folder, folder / MANIFEST, *inside}):
        try:
            fault = "is a link" if path.is_symlink() else fault_of(path)
        except FileNotFoundError:  # reported later as a changed file
            continue
        if fault is not None:
            raise _unsafe(folder, path, fault)
    for path, fault in faults_above(folder):
        if "written" in fault:
            raise _unsafe(folder, path, fault)


def _unsafe(folder: Path, path: Path, fault: str) -> UnsafeProjectError:
    return UnsafeProjectError(
        f"snnc would compile and execute the contents of {str(folder)!r}, but {str(path)!r} {fault}; make it your own and remove the write "
        f"permission of others (chown, chmod go-w), copy the project to a folder of your own, or allow it: {_ADVICE}."
    )


def _listed(folder: Path) -> dict[str, str]:
    listed = read_manifest(folder)
    if listed is None:
        newer = newer_format(folder)
        if newer is not None:
            raise NewerProjectError(
                f"a newer snnc wrote the project {str(folder)!r}: its format is {newer!r}, but this version reads {FORMAT!r}; install a "
                "newer snnc, or compile the model again with this one."
            )
        raise ProjectFolderError(
            f"the project {str(folder)!r} has no list of its files ({MANIFEST} is missing or damaged); compile the model again."
        )
    return listed


def _changed(folder: Path, listed: Mapping[str, str], suffixes: frozenset[str]) -> list[str]:
    return sorted(name for name, digest in listed.items() if PurePosixPath(name).suffix in suffixes and _digest(folder / name) != digest)


def _digest(path: Path) -> str:
    try:
        return digest_of(path) if path.is_file() else ""
    except OSError:
        return ""


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} others" if len(names) > 3 else "")


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _them(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"
