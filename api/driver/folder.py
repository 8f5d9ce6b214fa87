"""A project folder: the model as data, the options, the plan and, for a machine, the emitted program."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from snnc.backends.native.memory import check_least
from snnc.compiler.ir.graph import Graph
from snnc.driver.loading import damaged, load_project
from snnc.driver.lowering import lowered
from snnc.options.compile_options import OPTIONS_FILE, Options, to_data
from snnc.options.targets import CPU, CUDA, UNPLACED, for_poptorch
from snnc.project.compiled import Compiled
from snnc.project.graph_file import save_graph

if TYPE_CHECKING:
    from snnc.driver.activity import Activity


def compile_graph(graph: Graph, chosen: Options, activity: Activity | None = None, *, strategy: str = "snnc") -> Compiled:
    """Lower `graph` and map it onto the target; other strategies than "snnc" are baselines to compare it with.

    Raises
    ------
    StepsNeededError
        A machine needs a fixed number of steps, and none is known.
    """
    program = lowered(graph, chosen)
    if chosen.target in UNPLACED:
        return Compiled(graph, chosen, program, None)
    # The mapping is a third of all code, and only machines of tiles want it.
    from snnc.driver.placing import map_graph

    found = map_graph(graph, program, chosen, activity, strategy=strategy)
    return Compiled(graph, chosen, program, found.plan, found.parts)


def write_project(compiled: Compiled, folder: Path) -> None:
    """Fill `folder`, which is empty or not there yet."""
    if compiled.plan is not None and for_poptorch(compiled.options.target):
        from snnc.backends.poptorch.emit import emit_poptorch

        emit_poptorch(compiled.program, compiled.plan, folder)
    elif compiled.plan is not None:
        from snnc.backends.poplar.emit import emit_poplar

        emit_poplar(compiled.placed, compiled.plan, folder)
    elif compiled.options.target == CPU:
        from snnc.backends.cpu.emit import emit_cpu

        chosen = compiled.options
        emit_cpu(compiled.program, folder, chosen.steps, chosen.batch, chosen.precision)
        _check_bound(chosen, folder)
    elif compiled.options.target == CUDA:
        from snnc.backends.cuda.emit import emit_cuda

        chosen = compiled.options
        emit_cuda(compiled.program, folder, chosen.steps, chosen.batch, chosen.precision)
        _check_bound(chosen, folder)
    (folder / "model").mkdir(parents=True, exist_ok=True)
    if compiled.parts is not None:
        from snnc.driver.placing import save_placed

        save_placed(compiled.parts, folder)
    save_graph(compiled.graph, folder / "model")
    (folder / OPTIONS_FILE).write_text(json.dumps({"version": 1, **to_data(compiled.options)}, indent=1) + "\n", encoding="utf-8")


def _check_bound(chosen: Options, folder: Path) -> None:
    """Refuse a bound on memory that nothing keeps, and say where the batch that was asked for does not."""
    if chosen.memory is None:
        return
    description = json.loads((folder / "project.json").read_text(encoding="utf-8"))
    advice = check_least(description, description["fixed_steps"], chosen.batch, chosen.memory)
    if advice:
        warnings.warn(advice, UserWarning, stacklevel=2)


def read_project(folder: Path) -> Compiled:
    """Read a compiled project, with the plan that was made then.

    Raises
    ------
    ProjectFolderError
        The folder is not a project, or is damaged.
    """
    graph, chosen = load_project(folder)
    with damaged(folder):
        program = lowered(graph, chosen)
        if chosen.target in UNPLACED:
            return Compiled(graph, chosen, program, None)
        from snnc.driver.placing import read_placed

        return Compiled(graph, chosen, program, *read_placed(graph, program, chosen, folder))
