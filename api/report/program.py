"""Report on a project without tiles: the network as snnc understands it, its predicted costs and its measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from snnc.backends.native.memory import predicted_bytes, segment_for
from snnc.backends.runtime.history import History
from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.window_values import is_run_value
from snnc.compiler.tiles.errors import ReportOptionError
from snnc.errors import NoTilesError
from snnc.options.compile_options import CompileOptions
from snnc.report.page import raster_data
from snnc.report.pictures.palette import LAYERS, RELAY
from snnc.report.pictures.raster import recording_data
from snnc.report.recording import Recording
from snnc.report.rendering import environment, json_text
from snnc.understanding.describe import describe

PROGRAM_FORMATS: Final = ("html", "text", "json")
NEED_TILES: Final = ("svg", "png", "graphml", "dot", "trace")
_AT_ONCE: Final = "all steps at once"
_RUNS: Final = {
    "walk": "neurons walk through time",
    "core": "recurrence on chip",
    "feedback": "recurrence with barriers",
    "pack": "around the steps",
    "clear": "around the steps",
    "prepare": "around the steps",
    "loss": "around the steps",
    "update": "around the steps",
}
"""How each kind of kernel launch processes the time steps; other kinds process all of them at once."""
_COLOURS: Final = dict(zip((_AT_ONCE, *dict.fromkeys(_RUNS.values())), (LAYERS[0], LAYERS[2], LAYERS[1], LAYERS[5], RELAY), strict=True))


@dataclass(frozen=True, eq=False)
class ProgramReport:
    """Data of a report without tiles.

    `project` is the contents of the emitted ``project.json`` (None if there is none), `recording` the spikes of a run, and `timing` the
    result of :func:`timing_of` for the last training run.
    """

    graph: Graph
    options: CompileOptions
    program: StepProgram
    project: Mapping[str, Any] | None = None
    recording: Recording | None = None
    timing: Mapping[str, Any] | None = None

    @property
    def parameters(self) -> int:
        """Number of stored parameters."""
        return sum(int(p.value.size) for name, p in self.program.parameters.items() if not is_run_value(name))


def write_program(program: ProgramReport, fmt: str) -> bytes:
    """Return the report of `program` as file contents."""
    if fmt in NEED_TILES:
        raise NoTilesError(
            f"{fmt!r} draws the tiles of a machine, but {program.options.target!r} has none; use {', '.join(PROGRAM_FORMATS)}, or compile "
            "for a machine listed by snnc targets."
        )
    if fmt not in PROGRAM_FORMATS:
        raise ReportOptionError(f"a report cannot be written as {fmt!r}; the formats are {', '.join(PROGRAM_FORMATS)}.")
    view = program_view(program)
    if fmt == "json":
        return json_text(view).encode()
    if fmt == "text":
        return environment(escape=False).get_template("program.txt.jinja").render(view).encode()
    fired = [] if view["recording"] is None else view["recording"]["activity"]
    owners = {name: number for number, name in enumerate(layer["name"] for layer in view["layers"])}
    data = {"relay": RELAY, "rasters": raster_data(program.recording, fired, owners, by_label=True), "ramp": []}
    page = environment(escape=True).get_template("program.html.jinja").render(view, data=data, activity_source="nothing")
    return page.encode()


def program_view(program: ProgramReport) -> dict[str, Any]:
    """Return the contents of the report as JSON types."""
    description, options = describe(program.graph), program.options
    return {
        "name": program.graph.name,
        "target": options.target,
        "about": options.backend.about,
        "kind": "training step" if program.program.loss else "forward pass",
        "steps": program.program.steps,
        "batch": options.batch,
        "neurons": sum(layer["neurons"] for layer in description["layers"]),
        "parameters": program.parameters,
        "options": _options(program),
        "table": description["table"],
        "layers": description["layers"],
        "equations": description["neurons"],
        "synops": description["synops"]["at_most"],
        "statements": description["statements"],
        "assumptions": description["assumptions"],
        "memory": _memory(program),
        "schedule": _schedule(program),
        "timing": None if program.timing is None else dict(program.timing),
        "recording": recording_data(None, program.recording),
    }


def timing_of(history: History, samples: int) -> dict[str, Any] | None:
    """Return the measured time of the fastest epoch of a run with `samples` samples per epoch; None if no epoch was completed."""
    epochs = zip(history.seconds, map(len, history.batch_losses), strict=True)
    seconds, updates = min(((s, n) for s, n in epochs if s > 0 and n), default=(0.0, 0))
    if not updates:
        return None
    used = samples - history.dropped
    per_update = {"updates": updates, "seconds": seconds, "milliseconds": 1e3 * seconds / updates}
    return {"measured": {**per_update, "samples_per_second": used / seconds, "batch": -(-used // updates)}}


def read_timing(data: object) -> dict[str, Any] | None:
    """Return a stored result of :func:`timing_of`; None if `data` is not one."""
    measured = data.get("measured") if isinstance(data, dict) else None
    if not isinstance(measured, dict) or set(measured) != {"updates", "seconds", "milliseconds", "samples_per_second", "batch"}:
        return None
    values = measured.values()
    if not all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) and v > 0 for v in values):
        return None
    kernels = _read_kernels(data["kernels"]) if isinstance(data, dict) and "kernels" in data else None
    return {"measured": measured} if kernels is None else {"measured": measured, "kernels": kernels}


def _read_kernels(data: object) -> dict[str, Any] | None:
    """Return the stored times of kernels (:class:`~snnc.backends.runtime.engine.TimingEngine`); None if `data` is something else."""
    if not isinstance(data, dict) or set(data) != {"device", "updates", "steps", "batch", "us"}:
        return None
    counts = [data[name] for name in ("updates", "steps", "batch")]
    times = data["us"]
    good = isinstance(data["device"], str) and isinstance(times, list) and all(type(n) is int and n > 0 for n in counts)
    return data if good and all(us is None or (type(us) in (int, float) and math.isfinite(us) and us >= 0) for us in times) else None


def _options(program: ProgramReport) -> list[dict[str, str]]:
    chosen, loss, optimizer = program.options, program.program.loss, program.program.optimizer
    values = {
        "loss": None if loss is None else loss.name,
        "optimizer": None if optimizer is None or chosen.optimizer is None else f"{optimizer.name}, lr {chosen.optimizer.lr:g}",
        "surrogate": None if chosen.surrogate is None else str(chosen.surrogate),
        "precision": chosen.precision,
        "truncate": None if chosen.truncate is None else f"every {chosen.truncate} steps",
        "threads": None if chosen.backend.support("threads") == "refused" else str(chosen.threads or "default"),
        "memory": None if chosen.memory is None else f"at most {chosen.memory:,} bytes",
    }
    return [{"name": name, "value": value} for name, value in values.items() if value is not None]


def predicted_memory(project: Mapping[str, Any], options: CompileOptions) -> tuple[int | None, int]:
    """Return the steps between two checkpoints (None without checkpoints) and the predicted bytes of a training step or forward pass.

    `project` is the contents of ``project.json``. Raise MemoryNeededError if no checkpoint interval stays within the memory limit.
    """
    steps, batch, threads = project["steps"], project["batch"], options.backend.threads(options.for_backend())
    segment = steps
    if project["training"] and options.memory is not None:
        segment = segment_for(project, steps, batch, options.memory, threads)
    return None if segment == steps else segment, predicted_bytes(project, steps, batch, segment, threads)


def _memory(program: ProgramReport) -> dict[str, Any] | None:
    """Return the predicted bytes of a training step or forward pass; None without an emitted project, or if its steps or batch are open."""
    project, options = program.project, program.options
    if project is None or not project["steps"] or not project["batch"]:
        return None
    segment, size = predicted_memory(project, options)
    return {
        "predicted": size,
        "parameters": 4 * program.parameters,
        "bound": options.memory,  # the user's limit
        "segment": segment,
        "steps": project["steps"],
        "batch": project["batch"],
    }


def _schedule(program: ProgramReport) -> dict[str, Any] | None:
    """Return the kernel launches of a training step or forward pass on a GPU, in order: predicted and, if they were timed, measured.

    None on other targets, or if the number of steps or of samples is open.
    """
    project = program.project
    if project is None or not project["steps"] or not project["batch"]:
        return None
    measured = (program.timing or {}).get("kernels")
    steps, batch = ((measured or project)[name] for name in ("steps", "batch"))
    predicted = program.options.backend.launches(project, steps, batch)
    if predicted is None:
        return None
    # If the numbers of kernels differ, the times are those of an older version of the project.
    if measured is not None and len(measured["us"]) != len(predicted["kernels"]):
        measured = None
    times = [None] * len(predicted["kernels"]) if measured is None else measured["us"]
    longest = max(kernel["us"] for kernel in predicted["kernels"])
    kernels = []
    for kernel, us in zip(predicted["kernels"], times, strict=True):
        runs = _RUNS.get(kernel["kind"], _AT_ONCE)
        kernels.append({**kernel, "measured_us": us, "runs": runs, "share": kernel["us"] / longest, "colour": _COLOURS[runs]})
    used = {kernel["runs"] for kernel in kernels}
    timed = None
    if measured is not None:
        total = 1e-3 * sum(us for us in measured["us"] if us is not None)
        timed = {"device": measured["device"], "updates": measured["updates"], "milliseconds": total}
    return {
        "card": predicted["card"],
        "milliseconds": 1e3 * predicted["seconds"],
        "host_us": 1e6 * predicted["host_seconds"],
        "steps": steps,
        "batch": batch,
        "measured": timed,
        "kernels": kernels,
        "colours": {runs: _COLOURS[runs] for runs in _COLOURS if runs in used},
    }
