"""Reports of compiled projects."""

from __future__ import annotations

import json
from pathlib import Path

from snnc.errors import ProjectFolderError
from snnc.project import PROFILE, read_project


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
    from snnc.inspect import render, summarise

    try:
        profile = json.loads((folder / PROFILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        profile = None
    except (OSError, ValueError) as error:
        raise ProjectFolderError(f"the profile in {str(folder)!r} is damaged ({error}); run the project again.") from None
    return render(compiled.plan, format, program=summarise(compiled.program), profile=profile)
