"""Output of ``snnc compile`` as text and JSON: the summary, the main facts of a plan, and a graph after a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from snnc.checks.trial import TrialRun
from snnc.cli.console import columns
from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.plan import Plan
from snnc.compiler.passes.flow import run_flow
from snnc.project.compiled import Compiled
from snnc.understanding.describe import describe
from snnc.understanding.table import assumption_lines, to_text


def as_data(compiled: Compiled, folder: Path, trial: TrialRun | None) -> dict[str, Any]:
    """Return the summary as JSON types."""
    data: dict[str, Any] = {
        "folder": str(folder),
        "target": compiled.options.target,
        "model": describe(compiled.graph, surrogate=compiled.options.surrogate),
    }
    if compiled.plan is not None:
        data["plan"] = plan_data(compiled.plan)
    if trial is not None:
        data["trial"] = vars(trial)
    return data


def as_text(compiled: Compiled, folder: Path, trial: TrialRun | None) -> list[str]:
    """Return the summary as lines of text: the model, the main facts of the plan, and the next commands."""
    description = describe(compiled.graph, surrogate=compiled.options.surrogate)
    lines = [*to_text(description, columns()), *assumption_lines({**description, "assumptions": []}, columns())]
    if compiled.plan is not None:
        lines += ["", *plan_lines(compiled.plan)]
    if trial is not None:
        took = f"one batch ran in {1e3 * trial.seconds:.1f} ms"
        lines += ["", f"{took}; largest difference from the reference: {trial.largest_difference:.2g}"]
        if compiled.options.mode == "drop":
            comparison = "as on the reference" if compiled.plan is None else "the reference sends them all"
            lines.append(f"          {trial.counters.get('dropped_spikes', 0):,} spikes were dropped (mode drop); {comparison}")
    lines += ["", f"wrote {folder}; next: {compiled.options.backend.next_command(folder, compiled.program.loss is not None)}"]
    return [*lines, f"             or: snnc inspect {folder}"]


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return the main numbers of a plan."""
    return {
        "tiles_used": sum(size > 0 for size in plan.tile_memory),
        "tiles": plan.target.tiles,
        **{name: getattr(plan, name) for name in ("steps", "batch", "interval", "iterations")},
        "bytes_on_fullest_tile": max(plan.tile_memory, default=0),
        "bytes_per_tile": plan.target.tile_bytes,
        "bytes_total": sum(plan.tile_memory),
        "predicted_cycles": plan.cycles,
        "predicted_seconds": plan.cycles / plan.target.clock_hz,
        "host_bytes": plan.host_bytes,
        "predicted_host_seconds": plan.host_seconds,
        "predicted_seconds_with_host": plan.seconds_with_host,
        **{name: getattr(plan, name) for name in ("training", "segment", "streamed")},
        "streaming_bytes": sum(plan.streaming_bytes),
        "activity": plan.activity_source,
        "windowed_gradients": [
            {"source": p.label, "lag": b.lag, "entries": b.gradient.capacity, "width": b.width}
            for b in plan.buses
            if b.gradient is not None
            for p in plan.populations
            if p.id == b.source
        ],
        "parts": {name: len(ids) for name, ids in plan.parts.items()},
        "populations": [{"name": p.label, "neurons": p.neurons, "tiles": p.tiles, "stage": p.stage} for p in plan.populations],
    }


def plan_lines(plan: Plan) -> list[str]:
    """Return the main facts of a plan as lines of text."""
    data = plan_data(plan)
    fullest, room = data["bytes_on_fullest_tile"], plan.target.tile_bytes
    what = "training step" if plan.training else "forward pass"
    cycles = dict.fromkeys((p.part for p in plan.phases), 0.0)
    for p in plan.phases:
        cycles[p.part] += p.runs * p.cycles
    share = ", ".join(f"{part} {100 * value / max(plan.cycles, 1):.0f} %" for part, value in cycles.items())
    rate = plan.batch * plan.target.clock_hz / max(plan.cycles, 1)
    fused = "; in the forward pass, relays search for spikes while neurons compute" if plan.latency > 1 else ""
    return [
        f"target    {plan.target.name}: {data['tiles_used']:,} of {plan.target.tiles:,} tiles used",
        f"tiles     {', '.join(_places(plan))}",
        f"memory    {data['bytes_total'] / 2**20:.1f} MiB in total; fullest tile {fullest / 1024:.0f} of {room / 1024:.0f} KiB",
        f"schedule  {plan.steps} steps in {plan.iterations} iterations (one step every {plan.interval}), batch {plan.batch}{fused}",
        f"time      {plan.cycles:,.0f} cycles per {what}, {1e6 * data['predicted_seconds']:,.0f} us, {rate:,.0f} samples/s (predicted)",
        f"          {share}; activity {plan.activity_source}",
        *_gradient_lines(data["windowed_gradients"]),
        *_recompute_lines(plan),
    ]


def _places(plan: Plan) -> list[str]:
    """Return each population and its number of tiles; parts of a split population are summed."""
    split_population = {id_: name for name, ids in plan.parts.items() for id_ in ids}
    tiles: dict[str, int] = {}
    for p in plan.populations:
        name = f"{split_population[p.id]} in {len(plan.parts[split_population[p.id]])} parts" if p.id in split_population else p.label
        tiles[name] = tiles.get(name, 0) + p.tiles
    return [f"{name} on {number}" for name, number in tiles.items()]


def _gradient_lines(windowed: list[dict[str, Any]]) -> list[str]:
    if not windowed:
        return []
    rows = dict.fromkeys(f"{w['entries']} of {w['width']} neurons of {w['source']}" for w in windowed)
    return [f"gradients return in windows of {', '.join(rows)}: those that spiked or are near the threshold"]


def _recompute_lines(plan: Plan) -> list[str]:
    if not plan.segment:
        return []
    cut = plan.segments
    stored = f"states of {cut.steps_in_history:,} steps and at {cut.boundaries:,} boundaries are stored"
    segments = f"in segments of {plan.segment:,}"
    twice = f"recompute {cut.rerun_iterations:,} of {cut.iterations:,} iterations run forward twice, {segments}: {stored}"
    lines = [twice] if cut.reruns else []
    what = {"boundaries": "first states of segments", "history": f"states of all segments but the last ({segments})"}.get(plan.streamed)
    if what is not None:
        time = sum(p.runs * p.cycles for p in plan.phases if p.name.endswith("streaming memory"))
        share = 100 * time / max(plan.cycles, 1)
        lines.append(f"streaming {what}: {sum(plan.streaming_bytes) / 2**20:,.1f} MiB in streaming memory, {share:.0f} % of the time")
    if plan.streamed != "off":
        lines.append(f"          the host sends inputs segment by segment, {plan.host_bytes / 2**20:,.1f} MiB per step")
    return lines


def graph_data(graph: Graph, after: str) -> dict[str, Any]:
    """Return the graph after the pass named `after`, as JSON types."""
    changed = run_flow(graph, dump_after=after)
    nodes = [{"name": n, "operation": type(changed.operation(n)).__name__} for n in changed.names]
    edges = [{"from": f"{e.source}.{e.source_port}", "to": f"{e.target}.{e.target_port}", "delay": e.delay} for e in changed.edges]
    return {"after": after, "nodes": nodes, "edges": edges, "model": describe(changed)}
