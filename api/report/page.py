"""Values for the template of the HTML page, computed from the report: positions in per cent, and data for its scripts.

A *step* is a training step or a forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from snnc.compiler.ir.plan import Plan
from snnc.report.pictures.encode import pack, pack_bytes, pack_places
from snnc.report.pictures.flow import draw_flow
from snnc.report.pictures.palette import CYCLE_COLOURS, LAYERS, MEMORY, RAMP, RELAY, ink_on, layer_colour
from snnc.report.pictures.raster import rasters
from snnc.report.pictures.timeline import TimelineRow, part_rows, whole_step
from snnc.report.recording import Recording
from snnc.report.subject import Subject
from snnc.report.view import build_view, tile_layout, tile_numbers

SMALL = 0.2
"""The chart of memory over a step omits the limit of a tile if all columns are below this share of it."""
FULLEST = 10
"""Maximum number of layers in the chart of memory per layer."""
WIRES = 8
"""Maximum number of rows in the table of the wires between IPUs."""
FLOWS = 10
"""Maximum number of rows in the table of the flows between layers."""
ITERATIONS, SCHEDULED = 12, 16
"""Maximum numbers of iterations and of layers in the table of the schedule."""
LABELLED = 7.0
"""Minimum width of a block with a label, in per cent of the row."""


def build_page(subject: Subject, comparison: Mapping[str, Any] | None, other: Subject | None) -> dict[str, Any]:
    """Return the values for the template; `comparison` is the result of :func:`snnc.report.compare.compare` with `other`."""
    view = build_view(subject)
    layers = {p.id: index for index, p in enumerate(subject.plan.populations)}
    return {
        **view,
        "layer_colours": [layer_colour(index) for index in layers.values()],
        "phases": _bars(view["phases"]),
        "flows": _largest(view),
        "wires": [{**w, "share": w["cycles"] / view["cycles"]} for w in view["traffic"]["links"][:WIRES]],
        "timeline": timeline(subject),
        "memory_bars": [{**m, "percent": 100 * m["share"], "colour": MEMORY.get(m["name"], RELAY)} for m in view["memory"]],
        "occupancy": _occupancy(subject, view),
        "layer_memory": _layer_memory(subject),
        "flow": draw_flow(subject),
        "wavefront": _wavefront(subject.plan),
        "colours": {"cycles": CYCLE_COLOURS, "memory": MEMORY, "relay": RELAY},
        "comparison": comparison,
        "layer_palette": LAYERS,
        "data": {
            "ramp": RAMP,
            "relay": RELAY,
            "maps": [tile_data(s) for s in (subject, other) if s is not None],
            "traffic": _traffic(subject),
            "rasters": raster_data(subject.recording, view["recording"]["activity"] if subject.recording else [], layers),
        },
    }


def _bars(phases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    longest = max(max(p["predicted_total"], p["emulated_total"] or 0) for p in phases)
    rows = []
    for phase in phases:
        row = dict(phase)
        for source in ("predicted", "emulated"):
            row[f"{source}_bars"] = [(part, 100 * value / longest, CYCLE_COLOURS[part]) for part, value in (phase[source] or {}).items()]
        rows.append(row)
    return rows


def _largest(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    nodes, flows = view["traffic"]["nodes"], view["traffic"]["flows"]
    total = sum(f["bytes"] for f in flows) or 1.0
    return [
        {**f, "from": nodes[f["source"]]["label"], "to": nodes[f["target"]]["label"], "share": f["bytes"] / total} for f in flows[:FLOWS]
    ]


def _stacked(sizes: Iterable[tuple[str, int]], total: float) -> list[dict[str, Any]]:
    """Return the parts of a stacked bar, in per cent of `total`, from bytes by category of memory."""
    return [{"name": n, "bytes": size, "percent": 100 * size / total, "colour": MEMORY.get(n, RELAY)} for n, size in sizes if size]


def _layer_memory(subject: Subject) -> dict[str, Any]:
    """Return the memory by category of each layer's fullest tile, largest total first; ``rest`` is the number of layers left out."""
    plan, rows = subject.plan, []
    memory = np.asarray(plan.tile_memory)
    for p, place in zip(plan.populations, subject.places.layers, strict=True):
        tile = int(place.tiles[memory[place.tiles].argmax()])
        parts = _stacked(((name, tiles[tile]) for name, tiles in plan.memory.items()), plan.target.tile_bytes)
        share = memory[tile] / plan.target.tile_bytes
        rows.append({"label": p.label, "tile": tile, "total": int(memory[tile]), "share": share, "parts": parts})
    rows.sort(key=lambda row: -row["total"])
    return {"rows": rows[:FULLEST], "rest": max(0, len(rows) - FULLEST)}


def _occupancy(subject: Subject, view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chart of memory over a step, a column of stacked categories per phase, in per cent of the height of the chart."""
    moments = view["memory_over_time"]
    limit = subject.plan.target.tile_bytes
    totals = [max(m["total"], m["emulated"] or 0) for m in moments]
    low = max(totals) < SMALL * limit
    scale = max(totals) if low else limit
    top = max(scale, *totals) * (1.3 if low else 1.06)
    ticks = [{"bytes": scale * n // 4, "percent": 100 * scale * n / 4 / top} for n in range(5)]
    order = [m["name"] for m in view["memory"]]
    columns = [
        {
            **m,
            "emulated_percent": None if m["emulated"] is None else 100 * m["emulated"] / top,
            "parts": _stacked(((name, m["bytes"][name]) for name in order), top),
        }
        for m in moments
    ]
    return {
        "columns": columns,
        "limit_percent": None if low else 100 * limit / top,
        "times": limit / max(*totals, 1),
        "ticks": ticks,
        "tile": moments[0]["tile"],
        "fullest": max(moments, key=lambda m: m["total"])["phase"],
        "emulated": any(m["emulated"] is not None for m in moments),
    }


def _wavefront(plan: Plan) -> dict[str, Any]:
    """Return the schedule: a row per layer with a cell per iteration, the time step computed in it or None."""
    columns = min(ITERATIONS, plan.iterations)
    rows = []
    for index, p in enumerate(plan.populations[:SCHEDULED]):
        places = (divmod(k - p.stage, plan.interval) for k in range(columns))
        steps = [t if rest == 0 and 0 <= t < plan.steps else None for t, rest in places]
        rows.append({"label": p.label, "colour": layer_colour(index), "ink": ink_on(layer_colour(index)), "steps": steps})
    rest = max(0, len(plan.populations) - SCHEDULED)
    return {"iterations": list(range(columns)), "rows": rows, "more": plan.iterations > columns, "rest": rest}


def timeline(subject: Subject) -> list[dict[str, Any]]:
    """Return a row for the whole step, and one for an iteration of each section of it (such as forward); each row has its own scale."""
    emulation = subject.emulation
    rows = (whole_step(subject.plan), *part_rows(subject.plan))
    if emulation is None or not emulation.phases:
        return [_row(subject, row, None, row.cycles) for row in rows]
    emulated_rows = (whole_step(subject.plan, emulation.phases), *part_rows(subject.plan, emulation.phases))
    return [_row(subject, row, other, max(row.cycles, other.cycles)) for row, other in zip(rows, emulated_rows, strict=True)]


def _row(subject: Subject, row: TimelineRow, emulated: TimelineRow | None, scale: float) -> dict[str, Any]:
    clock = subject.plan.target.clock_hz
    return {
        "title": row.title,
        "length": f"{row.cycles:,.0f} cycles, {microseconds(row.cycles / clock)}",
        "counted": f"{emulated.cycles:,.0f} cycles" if emulated else "",
        "heads": [_span(subject, span, scale) for span in row.heads],
        "spans": [_span(subject, span, scale) for span in row.spans if span.cycles > 0],
        "emulated": [_span(subject, span, scale, "emulated") for span in emulated.spans if span.cycles > 0] if emulated else [],
    }


def _span(subject: Subject, span: Any, scale: float, source: str = "predicted") -> dict[str, Any]:
    phase = next((p for p in subject.plan.phases if p.name == span.phase), None)
    width = 100 * span.cycles / scale
    runs = f", {span.runs:,} runs" if span.runs > 1 else ""
    hint = f"{span.phase}{', ' + span.kind if span.kind else ''}: {span.cycles:,.0f} cycles {source}{runs}"
    if phase is not None:
        hint += f"; busiest tile {phase.busiest_tile:,}, {phase.bytes_in:,} bytes received in a run"
    return {
        "left": 100 * span.start / scale,
        "width": width,
        "label": span.phase if width >= LABELLED else "",
        "hint": hint,
        "colour": CYCLE_COLOURS.get(span.kind, ""),
        "tile": phase.busiest_tile if phase is not None else None,
    }


def microseconds(seconds: float) -> str:
    """Format a time with three digits, in µs or ms."""
    return f"{1e6 * seconds:.3g} µs" if seconds < 1e-3 else f"{1e3 * seconds:.3g} ms"


def tile_data(subject: Subject) -> dict[str, Any]:
    """Return the values of every tile for the map, encoded by :func:`pack`."""
    plan, places = subject.plan, subject.places
    return {
        "name": plan.name,
        "layers": [p.label for p in plan.populations],
        "colours": [layer_colour(n) for n in range(len(plan.populations))],
        "groups": [[[g.first, g.count] for g in place.groups] for place in places.layers],
        "tiles": plan.target.tiles,
        **tile_layout(subject, pack),
        "members": [pack(np.diff(place.tiles, prepend=0)) for place in places.layers],
        **tile_numbers(subject, pack),
    }


def _traffic(subject: Subject) -> dict[str, Any]:
    traffic = subject.traffic
    kinds = list(dict.fromkeys(f.kind for f in traffic.flows))
    return {
        "nodes": [subject.names.get(node, node) for node in traffic.nodes],
        "inputs": len(traffic.nodes) - len(subject.plan.populations),
        "kinds": kinds,
        "flows": [[f.source, f.target, kinds.index(f.kind), round(f.bytes)] for f in traffic.flows],
        "chips": [[round(size) for size in row] for row in traffic.chips.tolist()],
    }


def raster_data(
    recording: Recording | None, activity: Sequence[Mapping[str, Any]], layers: Mapping[str, int], *, by_label: bool = False
) -> list[dict[str, Any]]:
    """Return rasters of the first recorded sample, with the colours of their layers.

    `layers` maps the id of each layer (its label if `by_label`) to its index.
    """
    if recording is None:
        return []
    data = []
    for raster, fired in zip(rasters(recording), activity, strict=True):
        layer = layers.get(fired["label" if by_label else "owner"], -1)
        encoded = {"places": pack_places(raster["places"]), "counts": pack_bytes(np.minimum(raster["counts"], 255))}
        curve = {name: fired[name] for name in ("over_time", "assumed")}
        data.append({**raster, **encoded, **curve, "layer": layer, "colour": RELAY if layer < 0 else layer_colour(layer)})
    return data
