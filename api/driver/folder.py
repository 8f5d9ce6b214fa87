"""Write the model and the options of a project next to the files that the target emits, and read a whole project."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from snnc.compiler.errors import GraphDataError
from snnc.compiler.ir.step_program import StepProgram
from snnc.driver.loading import load_options, reported_damage
from snnc.driver.lowering import lower_graph
from snnc.driver.trusting import check_data, has_known_program
from snnc.options.compile_options import OPTIONS_FILE, CompileOptions, to_data
from snnc.project.compiled import Compiled
from snnc.project.graph_file import SavedModel, save_graph, save_program


def save_model(compiled: Compiled, folder: Path) -> None:
    """Write the model and the options of a project and, for a program that the planner rewrote, its parts or channel orders."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    if compiled.parts is not None:
        from snnc.project.placed import save_placed

        save_placed(compiled.parts, folder)
    save_program(compiled.program, model, save_graph(compiled.graph, model))
    (folder / OPTIONS_FILE).write_text(json.dumps({"version": 1, **to_data(compiled.options)}, indent=1) + "\n", encoding="utf-8")


def read_project(folder: Path) -> Compiled:
    """Read a compiled project, with its stored step program and plan."""
    chosen = load_options(folder)
    check_data(folder)
    with reported_damage(folder):
        saved = SavedModel(folder / "model")
        program, accepted = _program(saved, chosen, folder), chosen.for_backend()
        plan, parts, options = None, None, accepted.for_plan()
        if options is not None:
            # Only targets with tiles need the code that reads plans, so it is imported here.
            from snnc.project.placed import read_placed

            plan, parts = read_placed(chosen.backend.prepare(saved.graph, accepted), program, options, folder)
        return Compiled(program, plan, parts, graph=saved.graph, options=chosen)


def _program(saved: SavedModel, chosen: CompileOptions, folder: Path) -> StepProgram:
    """Return the stored step program if this user compiled or trusted the project; otherwise, or if it is missing, lower the graph."""
    if has_known_program(folder):
        with suppress(GraphDataError):  # written by a different version of snnc
            return saved.program(chosen.loss, chosen.optimizer)
    return lower_graph(saved.graph, chosen).program
