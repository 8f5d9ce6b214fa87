"""Everything that a report shows, computed once, as plain data; templates only loop over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snnc.compiler.mapping.plan_json import runs
from snnc.compiler.plan import Plan
from snnc.inspect.flow import draw_flow
from snnc.inspect.lines import plan_lines
from snnc.inspect.palette import MEMORY, PARTS, RAMP, RELAY, layer_colour
from snnc.inspect.profile import CODES, measured_phases
from snnc.inspect.tiles import grid_of, neurons, owners
from snnc.inspect.wavefront import draw_wavefront


def build_view(plan: Plan, program: Mapping[str, Any] | None, profile: Mapping[str, Any] | None) -> dict[str, Any]:
    """Collect the numbers of a report; `program` is what :func:`snnc.inspect.summarise` returned."""
    measured = measured_phases(profile)
    total = plan.cycles
    emulated = sum(m["compute"] + m["sync"] + m["exchange"] for m in measured.values()) / _repeats(plan, measured)
    return {
        "name": plan.name,
        "target": plan.target.name,
        "kind": "training step" if plan.training else "forward pass",
        "facts": facts(plan),
        "lines": plan_lines(plan),
        "layers": _layers(plan, program or {}),
        "buses": _buses(plan, program or {}),
        "phases": _phases(plan, measured),
        "cycles": total,
        "measured": bool(measured),
        "emulated": emulated if measured and all(p.name in measured for p in plan.phases if p.name in CODES) else None,
        "memory": _memory(plan),
        "tiles": _tiles(plan),
        "flow": draw_flow(plan, program or {}),
        "wavefront": draw_wavefront(plan),
        "activity_source": plan.activity_source,
        "assumptions": list((program or {}).get("assumptions", [])),
        "program": program,
        "colours": {"parts": PARTS, "memory": MEMORY, "ramp": RAMP, "relay": RELAY},
    }


def facts(plan: Plan) -> dict[str, Any]:
    """The headline numbers."""
    memory = plan.tile_memory
    used = sum(tile > 0 for tile in memory)
    return {
        "milliseconds": plan.seconds * 1e3,
        "samples_per_second": plan.batch / plan.seconds,
        "steps": plan.steps,
        "batch": plan.batch,
        "interval": plan.interval,
        "iterations": plan.iterations,
        "stages": 1 + max(p.stage for p in plan.populations),
        "tiles": plan.target.tiles,
        "tiles_used": used,
        "chips": plan.target.chips,
        "chips_used": plan.chips_used,
        "busiest_tile": max(range(len(memory)), key=memory.__getitem__),
        "busiest_bytes": max(memory),
        "tile_bytes": plan.target.tile_bytes,
        "cycles": plan.cycles,
        "clock_hz": plan.target.clock_hz,
    }


def _layers(plan: Plan, program: Mapping[str, Any]) -> list[dict[str, Any]]:
    known = {p["id"]: p for p in program.get("populations", [])}
    weights: dict[str, int] = {}
    for connection in program.get("connections", []):
        weights[connection["target"]] = weights.get(connection["target"], 0) + connection["parameters"]
    memory = plan.tile_memory
    found = []
    for index, p in enumerate(plan.populations):
        held = [memory[tile] for tile in p.all_tiles]
        compute = plan.tile_cycles.get("compute", (0,) * plan.target.tiles)
        per_tile = -(-p.neurons // p.width)
        info = known.get(p.id, {})
        found.append(
            {
                "id": p.id,
                "label": p.label,
                "colour": layer_colour(index),
                "model": info.get("model", ""),
                "equations": info.get("equations", ""),
                "neurons": p.neurons,
                "parameters": weights.get(p.id, 0) + info.get("parameters", 0) if info else None,
                "stage": p.stage,
                "first_tile": p.starts[0],
                "last_tile": p.all_tiles[-1],
                "replicas": p.replicas,
                "tiles": p.tiles,
                "neurons_per_tile": per_tile,
                "blocks": len(p.blocks),
                "largest_tile_bytes": max(held),
                "compute": max(compute[tile] for tile in p.all_tiles),
            }
        )
    return found


def _buses(plan: Plan, program: Mapping[str, Any]) -> list[dict[str, Any]]:
    labels = {i["id"]: i["label"] for i in program.get("inputs", [])} | {p.id: p.label for p in plan.populations}
    return [
        {
            "id": b.id,
            "source": labels.get(b.source, b.source),
            "kind": b.kind,
            "width": b.width,
            "lag": b.lag,
            "capacity": b.capacity,
            "mode": b.mode,
            "relays": len(b.relays),
            "activity": plan.activity.get(b.buffer),
        }
        for b in plan.buses
    ]


def _repeats(plan: Plan, measured: Mapping[str, Mapping[str, float]]) -> float:
    """Training steps that the profile holds, from how often each phase ran."""
    runs_of = {p.name: p.runs for p in plan.phases}
    return max((m["runs"] / runs_of[name] for name, m in measured.items() if name in runs_of), default=1.0) or 1.0


def _phases(plan: Plan, measured: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Predicted and emulated cycles of a whole training step, with widths in per cent of the longest bar."""
    repeats = _repeats(plan, measured)
    rows: list[dict[str, Any]] = []
    for p in plan.phases:
        mine = measured.get(p.name)
        rows.append(
            {
                "name": p.name,
                "part": p.part,
                "runs": p.runs,
                "busiest_tile": p.busiest_tile,
                "bytes_in": p.bytes_in,
                "predicted": {kind: p.runs * getattr(p, kind) for kind in PARTS},
                "once": {kind: getattr(p, kind) for kind in PARTS},
                "emulated": {kind: mine[kind] / repeats for kind in PARTS} if mine else None,
            }
        )
    longest = max(max(sum(r[k].values()) for k in ("predicted", "emulated") if r[k]) for r in rows)
    for row in rows:
        for kind in ("predicted", "emulated"):
            if row[kind]:
                row[f"{kind}_total"] = sum(row[kind].values())
                row[f"{kind}_bars"] = [(part, 100 * value / longest, PARTS[part]) for part, value in row[kind].items()]
        row["share"] = row["predicted_total"] / plan.cycles
    return rows


def _memory(plan: Plan) -> list[dict[str, Any]]:
    memory = plan.tile_memory
    busiest = max(range(len(memory)), key=memory.__getitem__)
    limit = plan.target.tile_bytes
    return [
        {"name": name, "bytes": tiles[busiest], "colour": MEMORY.get(name, RELAY), "percent": 100 * tiles[busiest] / limit}
        for name, tiles in plan.memory.items()
    ]


def _tiles(plan: Plan) -> dict[str, Any]:
    """Per-tile numbers for the map, as runs."""
    grid = grid_of(plan.target)
    return {
        "columns": grid.columns,
        "rows": grid.rows,
        "across": grid.chips_across,
        "per_chip": plan.target.tiles_per_chip,
        "chips": plan.target.chips,
        "limit": plan.target.tile_bytes,
        "owner": runs(owners(plan)),
        "neurons": runs(neurons(plan)),
        "memory": {name: runs(tiles) for name, tiles in plan.memory.items()},
        "cycles": {name: runs(tiles) for name, tiles in plan.tile_cycles.items()},
    }
