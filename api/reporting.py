"""Reports of compiled projects."""

from __future__ import annotations

from pathlib import Path

from snnc.errors import ProjectFolderError
from snnc.project import read_project


def report(folder: Path, format: str) -> str:
    """Return the report of the project in `folder`.

    Raises
    ------
    ProjectFolderError
        The folder is no project, or one without a plan.
    """
    compiled = read_project(folder)
    if compiled.plan is None:
        raise ProjectFolderError(f"{str(folder)!r} was compiled for the reference backend, which has no plan; compile for a machine.")
    from snnc.inspect import render

    return str(render(compiled.plan, format))
