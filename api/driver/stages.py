"""Stages of a compilation after loading and lowering: check -> plan -> emit -> build -> open, as the target's backend implements them.

An estimate stops after the plan, ``snnc compile`` after emitting; a session runs all stages.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from snnc.backends.registry import synonyms
from snnc.backends.runtime.engine import Engine
from snnc.backends.training.updates.norm_layers import trains_normalised
from snnc.backends.training.updates.normalising import NormalisingEngine
from snnc.compiler.ir.graph import Graph
from snnc.driver.folder import save_model
from snnc.driver.lowering import Lowered, lower_graph
from snnc.driver.measuring import Data, activity_on_data
from snnc.options.compile_options import CompileOptions
from snnc.project.compiled import Compiled

if TYPE_CHECKING:
    from snnc.compiler.tiles.activity import Activity
    from snnc.compiler.tiles.planning.ordering import Common


def planned(graph: Graph, chosen: CompileOptions, data: Path | Data | None = None) -> Compiled:
    """Prepare, lower, check and plan `graph`; if the target uses the activity of its neurons, it is measured on `data`."""
    activity = None
    if data is not None and chosen.backend.support("calibrate") != "refused":
        activity = activity_on_data(graph, chosen, data)
    return plan_program(lower_graph(graph, chosen), chosen, activity)


def plan_program(
    lowered: Lowered, chosen: CompileOptions, activity: Activity | None = None, strategy: str = "snnc", common: Common | None = None
) -> Compiled:
    """Check and plan a lowered graph.

    A `strategy` other than "snnc" is a baseline for comparison. `common` caches results that plans for several machines share.
    """
    backend = chosen.backend
    accepted = chosen.for_backend(calibrate=activity, strategy=strategy, other_targets=synonyms(), common=common)
    backend.check(lowered.program, accepted)
    placed = backend.plan(lowered.ready, lowered.program, accepted)
    return Compiled(placed.program, placed.plan, placed.parts, graph=lowered.graph, options=chosen)


def emit_project(compiled: Compiled, folder: Path) -> None:
    """Write the emitted files and the model into `folder`, which is empty or does not exist."""
    compiled.options.backend.emit(compiled, compiled.options.for_backend(), folder)
    save_model(compiled, folder)


def open_engine(compiled: Compiled, folder: Path | None) -> Engine:
    """Build the project in `folder` and load it; `folder` is None for a target that emits nothing."""
    backend, accepted = compiled.options.backend, compiled.options.for_backend()
    built = None if folder is None else backend.build(folder, accepted)
    engine = backend.open(compiled, accepted, built)
    return NormalisingEngine(engine, compiled.program) if backend.trains and trains_normalised(compiled.program) else engine
