"""Map and time one benchmark with one strategy: ``python -m snnc.benchmarks.measure NAME STRATEGY [TARGET] [--emit]``.

The suites run it in a fresh process, so that the measured seconds and peak memory are those of this compilation alone. The last line of
stdout is the row as JSON.

The *published program* is that of arXiv 2311.04386, with its own mapping; :mod:`snnc.benchmarks.published` models its cost. The *log* is
the timing log that its authors published (:mod:`snnc.benchmarks.log`).
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from snnc.benchmarks.benchmark import Benchmark, by_buffer
from snnc.benchmarks.cpu.memory import max_resident_bytes
from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.nets import benchmark, on_chips, with_full_capacities
from snnc.benchmarks.published import predict_published
from snnc.compiler.errors import SnncError
from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.plan import Plan
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.baselines.baselines import SNNC
from snnc.compiler.tiles.errors import BaselineTooBigError, PublishedOptionError, TooBigError
from snnc.compiler.tiles.planning.placing import map_graph
from snnc.compiler.tiles.replan import as_planned
from snnc.driver.estimating import Estimate
from snnc.driver.lowering import lower_graph
from snnc.driver.stages import emit_project
from snnc.errors import BenchError
from snnc.project.compiled import Compiled

PUBLISHED: Final = "published"
DENSE: Final = "dense"
"""Strategy: the network with values in place of spikes, mapped by snnc's own strategy."""
VARIED: Final = (PUBLISHED, SNNC)
"""Strategies whose times of logged runs are also predicted with other fragment costs and with every capacity in use."""
FRAGMENT_CYCLES: Final = (6.0, 20.0)
"""Smallest and largest cost of an exchange fragment in the sources of the cost model, in cycles; machine files have 9."""


def measure(name: str, strategy: str, target: str | None = None, *, emit: bool = False, chips: int | None = None) -> dict[str, Any]:
    """Map one benchmark and return its row; a failure is the row's ``error``.

    `strategy` is a strategy of placement such as "snnc", or :data:`PUBLISHED` or :data:`DENSE`. `target` is the name of the machine (None:
    the benchmark's own), and `chips` the number of chips that are used (None: the benchmark's own; without a `target`, the machine is then
    the one that :data:`snnc.benchmarks.nets.MACHINES` has for this number). With `emit`, the project is also emitted, to a temporary
    folder; only plans of the strategy "snnc" can be emitted.
    """
    case = benchmark(name) if chips is None else on_chips(benchmark(name), chips)
    case = _without_events(case) if strategy == DENSE else case
    machine = load_target(target or case.target)
    row: dict[str, Any] = {
        "net": name,
        "suite": case.suite,
        "target": machine.name,
        "clock_ghz": machine.clock_hz / 1e9,
        "chips": case.chips,
        "strategy": strategy,
        "batch": case.batch,
        "steps": case.steps,
        "activity": case.activity_source,
        "fits": False,
        "step_cycles": None,
        "bound_cycles": None,
    }
    logged = next((run for run in logged_runs() if run.name == name), None)
    if logged is not None:
        row["logged_ms"] = logged.logged_ms
    start, cpu = time.perf_counter(), time.process_time()
    try:
        placement = SNNC if strategy == DENSE else strategy
        result = _published(case, machine) if strategy == PUBLISHED else _mapped(case, placement, machine, emit=emit)
    except SnncError as error:
        result = {"error": error.text, "code": error.code}
        if isinstance(error, BaselineTooBigError):
            result["peak_tile_bytes"] = error.needed
    plan = result.pop("plan", None)
    row |= {"compile_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu} | result
    row["peak_rss_mb"] = max_resident_bytes() / 2**20
    if logged is None or not row["fits"] or strategy not in VARIED:
        return row
    return row | _variants(case, machine, plan)


def mapped_plan(case: Benchmark) -> Plan:
    """Map a benchmark network to its machine by snnc's strategy and return its plan; raise TooBigError if it does not fit."""
    return _plan(case, SNNC, load_target(case.target))[1]


def _without_events(case: Benchmark) -> Benchmark:
    """Return the same network with values in place of spikes; neither capacities nor a gradient window apply to it."""
    if case.build_dense is None:
        raise BenchError(f"the benchmark {case.name!r} has no form without events; those of the paper's grids have one.")
    return replace(
        case,
        build=case.build_dense,
        activity={},
        activity_source="dense: all values are moved and multiplied",
        capacity={},
        gradient_window=None,
        support={},
        counts={},
        support_counts={},
    )


def _variants(case: Benchmark, machine: Target, plan: Plan | None) -> dict[str, Any]:
    """Predict a logged run with the smallest and largest fragment cost, and with every capacity in use."""
    band = [_milliseconds(case, replace(machine, fragment_cycles=cycles), plan) for cycles in FRAGMENT_CYCLES]
    return {"predicted_ms_band": band, "predicted_ms_full": _milliseconds(with_full_capacities(case), machine, plan)}


def _milliseconds(case: Benchmark, machine: Target, plan: Plan | None) -> float | None:
    """Return the predicted milliseconds of a step of the published program, or of snnc's placed as in `plan`; None if it does not fit."""
    if plan is None and case.published is not None:
        return predict_published(case.published, machine, case.published_options).milliseconds()
    try:
        return 1e3 * _plan(case, SNNC, machine, plan)[1].seconds
    except TooBigError:
        return None


def _published(case: Benchmark, machine: Target) -> dict[str, Any]:
    if case.published is None:
        raise PublishedOptionError(f"the published program runs chains of dense layers, and {case.name!r} is not such a chain.")
    prediction = predict_published(case.published, machine, case.published_options)
    row: dict[str, Any] = {
        "ipus": case.chips,
        "fits": prediction.fits,
        "peak_tile_bytes": prediction.peak_tile_bytes,
        "tile_bytes": machine.tile_bytes,
    }
    if not prediction.fits:
        return row | {"error": f"does not fit: {prediction.peak_tile_bytes:,} bytes of {machine.tile_bytes:,}", "code": ""}
    milliseconds = prediction.milliseconds()
    return row | {"predicted_ms": milliseconds, "step_ms": milliseconds, "step_cycles": prediction.step_cycles}


def _mapped(case: Benchmark, strategy: str, machine: Target, *, emit: bool) -> dict[str, Any]:
    """Map the network and return the rest of its row; with `emit`, also write a project folder."""
    start = time.perf_counter()
    compiled, plan = _plan(case, strategy, machine)
    mapped = time.perf_counter()
    data = Estimate(plan, mapped - start).to_data()
    row = {key: data[key] for key in _ESTIMATED}
    row |= {
        "fits": True,
        "predicted_ms": data["step_ms"],
        "neurons": sum(p.neurons for p in plan.populations),
        "weights": sum(p.value.size for p in compiled.program.parameters.values()),
        "map_s": mapped - start,
        "memory_bytes": {kind: sum(tiles) for kind, tiles in plan.memory.items()},
        "plan": plan,
    }
    if emit:
        with temporary_folder("snnc-bench-") as folder:
            emit_project(compiled, Path(folder) / "project")
        row["emit_s"] = time.perf_counter() - mapped
    return row | {"emitted": emit, "compile_s": time.perf_counter() - start}


def _plan(case: Benchmark, strategy: str, machine: Target, placed_as: Plan | None = None) -> tuple[Compiled, Plan]:
    """Build the network, lower and map it; with `placed_as`, neurons are placed as in that plan."""
    graph = case.build().graph()
    chosen = case.options(machine.name)
    lowered = lower_graph(graph, chosen)
    program = lowered.program
    activity = Activity(by_buffer(program, case.activity), {}, case.activity_source)
    if not case.capacity:
        wanted = chosen.for_backend().for_plan()
        mapped = map_graph(lowered.ready, program, wanted, activity, machine=machine, strategy=strategy, chips=case.chips)
        return Compiled(program, mapped.plan, mapped.parts, graph=graph, options=chosen), mapped.plan
    # Like the published program, this plan sends the lowest ids of a step, up to the capacity, and drops the rest.
    support, capacity = by_buffer(program, case.support), by_buffer(program, case.capacity)
    plan = make_plan(
        program,
        machine,
        steps=case.steps,
        batch=case.batch,
        mode="drop",
        strategy=strategy,
        chips=case.chips,
        activity=activity.mean,
        activity_source=activity.source,
        capacity=capacity,
        support=support,
        counts=by_buffer(program, case.counts),
        support_counts=by_buffer(program, case.support_counts),
        gradient_capacity={name: capacity[name] for name in support},
        placer=None if placed_as is None else as_planned(placed_as),
        fused=None if placed_as is None else placed_as.latency > 1,
    )
    return Compiled(program, plan, graph=graph, options=chosen), plan


_ESTIMATED: Final = (
    *("ipus", "tiles_used", "tiles", "step_cycles", "bound_cycles", "ideal_cycles", "balance"),
    *("step_ms", "peak_tile_bytes", "tile_bytes"),
)
"""Keys of an estimate that are copied into a row."""


if __name__ == "__main__":
    names = [argument for argument in sys.argv[1:] if argument != "--emit"]
    print(json.dumps(measure(*names, emit="--emit" in sys.argv), allow_nan=False))
