"""Reports of compiled projects and of plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from snnc.backends.manifest import PROFILE, RECORDING
from snnc.compiler.mapping.plan_json import plan_from_json
from snnc.errors import ProjectFolderError
from snnc.project import read_project
from snnc.recording import in_parts, read_recording

if TYPE_CHECKING:
    from snnc.inspect import Subject

MOST_PLAN_BYTES = 1 << 28
"""A larger file is no plan."""


def report(path: Path, format: str, other: Path | None = None) -> bytes:
    """Return the report of the project, the plan or the profile of an emulated program at `path`.

    Beside that of a project or plan stands that of `other`, where it is given.

    Raises
    ------
    ProjectFolderError
        A folder is no project, or one without a plan.
    PlanFileError
        A file is no plan.
    ReportOptionError
        The format is unknown, or shows no second plan.
    """
    from snnc.inspect import write
    from snnc.inspect.emulated import read_profile, write_profile

    profile = read_profile(path) if path.is_file() and other is None else None
    if profile is not None:
        return write_profile(profile, format)
    return write(read_subject(path), format, None if other is None else read_subject(other))


def usual_format(path: Path) -> str:
    """Return the format of a report for which nobody named one: a page, but text of the profile of an emulated program."""
    from snnc.inspect.emulated import read_profile

    return "text" if path.is_file() and read_profile(path) is not None else "html"


def read_subject(path: Path) -> Subject:
    """Read all that a project folder holds for a report; of a file, the plan."""
    from snnc.inspect import Subject, summarise

    if path.is_file() or path.suffix == ".json":
        return Subject(plan_from_json(_plan_text(path)), {})
    compiled = read_project(path)
    if compiled.plan is None:
        raise ProjectFolderError(f"{str(path)!r} was compiled for {compiled.options.target}, which has no plan; compile for a machine.")
    try:
        profile = json.loads((path / PROFILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        profile = None
    except (OSError, ValueError) as error:
        raise ProjectFolderError(f"the profile in {str(path)!r} is damaged ({error}); run the project again.") from None
    recorded = path / RECORDING
    recording = read_recording(recorded) if recorded.exists() else None
    if recording is not None and compiled.parts is not None:
        recording = in_parts(recording, compiled.parts.between)
    return Subject(compiled.plan, summarise(compiled.placed), profile, recording)


def _plan_text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_PLAN_BYTES:
            raise ProjectFolderError(
                f"{str(path)!r} holds {path.stat().st_size:,} bytes, which no plan does; give a plan.json or a project."
            )
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectFolderError(f"the plan {str(path)!r} cannot be read ({error}); give a plan.json or a project.") from None
