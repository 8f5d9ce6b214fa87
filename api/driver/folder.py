"""A project folder: the model as data, the options and what was planned, beside what the target emitted."""

from __future__ import annotations

import json
from pathlib import Path

from snnc.driver.loading import damaged, load_project
from snnc.driver.lowering import lower_graph
from snnc.options.compile_options import OPTIONS_FILE, to_data
from snnc.project.compiled import Compiled
from snnc.project.graph_file import save_graph


def save_model(compiled: Compiled, folder: Path) -> None:
    """Write what a project keeps beside its program."""
    (folder / "model").mkdir(parents=True, exist_ok=True)
    if compiled.parts is not None:
        from snnc.project.placed import save_placed

        save_placed(compiled.parts, folder)
    save_graph(compiled.graph, folder / "model")
    (folder / OPTIONS_FILE).write_text(json.dumps({"version": 1, **to_data(compiled.options)}, indent=1) + "\n", encoding="utf-8")


def read_project(folder: Path) -> Compiled:
    """Read a compiled project, with the plan that was made then.

    Raises
    ------
    ProjectFolderError
        The folder is not a project, or is damaged.
    """
    graph, chosen = load_project(folder)
    with damaged(folder):
        given, wanted = lower_graph(graph, chosen), chosen.own().for_plan()
        if wanted is None:
            return Compiled(graph, chosen, given.program, None)
        # The mapping is a third of all code, and only machines of tiles want it.
        from snnc.project.placed import read_placed

        return Compiled(graph, chosen, given.program, *read_placed(given.ready, given.program, wanted, folder))
