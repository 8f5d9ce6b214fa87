"""Write reports of compiled projects, plans and profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snnc.backends.folders.manifest import PROFILE, RECORDING
from snnc.compiler.ir.plan_json import plan_from_json
from snnc.driver.folder import read_project
from snnc.driver.loading import load_options
from snnc.errors import NoTilesError, ProjectFolderError
from snnc.project.trained import read_trained
from snnc.report.recording import Recording, read_recording

if TYPE_CHECKING:
    from snnc.report import Subject
    from snnc.report.program import ProgramReport

MAX_PLAN_BYTES = 1 << 28


def report(path: Path, format: str, other: Path | None = None) -> bytes:
    """Return the report of a project, a plan file, or the profile of an emulated program; with `other`, compare two projects or plans."""
    from snnc.report import write
    from snnc.report.emulated import profile_in, write_profile

    profile = profile_in(path) if path.is_file() and other is None else None
    if profile is not None:
        return write_profile(profile, format)
    program = read_program(path)
    if program is not None or (other is not None and read_program(other) is not None):
        from snnc.report.program import write_program

        if other is not None or program is None:
            raise NoTilesError("--compare shows two plans side by side, but a project without tiles has no plan; leave it out.")
        return write_program(program, format)
    return write(read_subject(path), format, None if other is None else read_subject(other))


def read_program(path: Path) -> ProgramReport | None:
    """Return the report data of a project without tiles; None for a project with tiles, and for a file."""
    if not path.is_dir() or load_options(path).backend.has_tiles:
        return None
    from snnc.report.program import ProgramReport, read_timing

    compiled = read_project(path)
    return ProgramReport(
        read_trained(compiled.graph, path),
        compiled.options,
        compiled.program,
        _json_of(path, "project.json") if compiled.options.backend.emits else None,
        _recording_of(path),
        read_timing(_json_of(path, PROFILE)),
    )


def _recording_of(folder: Path) -> Recording | None:
    return read_recording(folder / RECORDING) if (folder / RECORDING).exists() else None


def _json_of(folder: Path, name: str) -> Any:
    try:
        return json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ProjectFolderError(f"{name} in {str(folder)!r} is damaged ({error}); compile the project again.") from None


def usual_format(path: Path) -> str:
    """Return the default format of a report: html, or text for the profile of an emulated program."""
    from snnc.report.emulated import profile_in

    return "text" if path.is_file() and profile_in(path) is not None else "html"


def read_subject(path: Path) -> Subject:
    """Return the report data of a project with tiles, or of a plan file."""
    from snnc.report import Subject, subject_of

    if path.is_file() or path.suffix == ".json":
        return Subject(plan_from_json(_plan_text(path)), {})
    return subject_of(read_project(path), _json_of(path, PROFILE), _recording_of(path))


def _plan_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_PLAN_BYTES:
            raise ProjectFolderError(f"{str(path)!r} has {path.stat().st_size:,} bytes, more than any plan; give a plan.json or a project.")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectFolderError(f"the plan {str(path)!r} cannot be read ({error}); give a plan.json or a project.") from None
