"""Contents of a report as JSON types, from which all formats are written; a *step* is a training step or a forward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.plan_json import runs
from snnc.compiler.machines.chip_links import find_routes
from snnc.report.limits import busiest_vertex
from snnc.report.pictures.palette import CYCLE_COLOURS
from snnc.report.pictures.raster import recording_data
from snnc.report.pictures.tiles import grid_of
from snnc.report.subject import Subject

FORMAT: Final = "snnc report 2"


def build_view(subject: Subject) -> dict[str, Any]:
    """Return the contents of a report; docs/reference/inspect.md explains each key."""
    plan, emulation = subject.plan, subject.emulation
    return {
        "format": FORMAT,
        "name": plan.name,
        "target": plan.target.name,
        "kind": "training step" if plan.training else "forward pass",
        "facts": facts(subject),
        "limits": [asdict(limit) for limit in subject.limits],
        "busiest_vertex": busiest_vertex(plan),
        "lines": plan_lines(subject),
        "layers": layers(subject),
        "buses": _buses(subject),
        "phases": phases(subject),
        "cycles": plan.cycles,
        "measured": emulation is not None and bool(emulation.phases),  # counts of the emulator
        "emulated": emulation.cycles if emulation and emulation.complete else None,
        "memory": _memory(subject),
        "memory_over_time": memory_over_time(plan, emulation.fullest if emulation else {}),
        "unshared_bytes": plan.unshared_bytes,
        "tiles": _tiles(subject),
        "traffic": _traffic(subject),
        "activity_source": plan.activity_source,
        "recording": recording_data(subject.plan, subject.recording),
        "assumptions": list(subject.program.get("assumptions", [])),
        "program": dict(subject.program) or None,
    }


def facts(subject: Subject) -> dict[str, Any]:
    """Return the headline numbers: sizes, predictions, and emulated times (keys that begin with ``emulated``)."""
    plan = subject.plan
    memory, tile = plan.tile_memory, plan.fullest_tile
    counted = subject.emulation.cycles if subject.emulation and subject.emulation.complete else None
    return {
        "milliseconds": plan.seconds * 1e3,
        "emulated_milliseconds": None if counted is None else 1e3 * counted / plan.target.clock_hz,
        "samples_per_second": plan.batch / plan.seconds,
        "host_bytes": plan.host_bytes,
        "host_milliseconds": None if plan.host_seconds is None else 1e3 * plan.host_seconds,
        "milliseconds_with_host": 1e3 * plan.seconds_with_host,
        "emulated_host": emulated_host(subject),
        **{name: getattr(plan, name) for name in ("steps", "batch", "interval", "iterations")},
        "stages": 1 + max(p.stage for p in plan.populations),
        "tiles": plan.target.tiles,
        "tiles_used": len(subject.places.used),
        "tiles_shared": subject.places.shared,
        "chips": plan.target.chips,
        "chips_used": chips_used(subject),
        "busiest_tile": tile,  # the tile with most memory in use
        "busiest_bytes": memory[tile],
        "busiest_share": memory[tile] / plan.target.tile_bytes,
        "tile_bytes": plan.target.tile_bytes,
        "cycles": plan.cycles,
        "bound_cycles": plan.bound_cycles or None,
        "ideal_cycles": plan.ideal_cycles or None,
        "strategy": plan.strategy,
        "parts": {name: list(ids) for name, ids in plan.parts.items()},
        "clock_hz": plan.target.clock_hz,
    }


def emulated_host(subject: Subject) -> dict[str, float] | None:
    """Return the milliseconds of host transfers in the last run, and how many passed while tiles ran (``hidden``); None before a run."""
    profile = subject.profile or {}
    if "host_cycles_beside_last_run" not in profile or not profile.get("cycles_last_run"):
        return None
    clock = subject.plan.target.clock_hz
    return {"milliseconds": 1e3 * profile["host_cycles_last_run"] / clock, "hidden": 1e3 * profile["host_cycles_beside_last_run"] / clock}


def plan_lines(subject: Subject) -> list[tuple[str, str]]:
    """Return the plan in six lines, as (title, sentence) pairs: network, schedule, placement, memory, time, activity."""
    plan, target = subject.plan, subject.plan.target
    size = plan.tile_memory[plan.fullest_tile]
    most = max(plan.memory, key=lambda category: plan.memory[category][plan.fullest_tile])
    parts = {kind: sum(p.runs * getattr(p, kind) for p in plan.phases) / plan.cycles for kind in ("compute", "exchange", "sync")}
    shares = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in parts.items())
    stages = 1 + max(p.stage for p in plan.populations)
    blocks = int((subject.places.owner >= 0).sum())  # tiles with neurons
    relays = len({r.tile for b in plan.buses for r in b.relays})
    kind = "training step" if plan.training else "forward pass"
    sizes = " + ".join(f"{p.neurons:,}" for p in plan.populations[:6]) + (" + …" if len(plan.populations) > 6 else "")
    split = "".join(f"; {name} in {len(ids)} parts" for name, ids in plan.parts.items())
    limited = [b for b in plan.buses if b.kind == "events" and b.capacity < b.width]
    windows = ", ".join(f"{b.capacity:,} of {b.width:,}" for b in limited[:4]) + (" …" if len(limited) > 4 else "")
    held = "every event"
    if limited:
        held = f"{windows} events, {'further ones follow' if limited[0].mode == 'exact' else 'more are dropped'}"
    activity = ", ".join(f"{100 * value:.3g} %" for value in list(plan.activity.values())[:6])
    network = f"{plan.name} on {target.name}: {sizes} neurons, {many(len(plan.connections), 'connection')}"
    tiles = f"{many(blocks, 'tile')} of neurons and {many(relays, 'relay tile')} of {target.tiles:,}"
    share = f"{100 * size / target.tile_bytes:.0f} %"
    return [
        ("network", f"{network}, T = {plan.steps}, batch {plan.batch}{split}"),
        ("schedule", f"{many(plan.iterations, 'iteration')} of {many(stages, 'stage')}, {many(plan.interval, 'iteration')} a time step"),
        ("placement", f"{tiles} ({chips_used(subject)} of {many(target.chips, 'chip')})"),
        ("memory", f"{size:,} of {target.tile_bytes:,} bytes on the fullest tile ({share}), most of it {most}"),
        ("time", f"{1e3 * plan.seconds:.4g} ms a {kind} predicted, {plan.batch / plan.seconds:,.0f} samples/s ({shares})"),
        ("activity", f"{activity or 'no spikes'} ({plan.activity_source}); windows hold {held}"),
    ]


def chips_used(subject: Subject) -> int:
    """Return the number of chips with data."""
    used = subject.places.used
    return len(set((used // subject.plan.target.tiles_per_chip).tolist()))


def many(number: int, what: str) -> str:
    """Return a count with its noun: ``3 tiles``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def layers(subject: Subject) -> list[dict[str, Any]]:
    """Return a row per layer."""
    plan, program = subject.plan, subject.program
    known = {p["id"]: p for p in program.get("populations", [])}
    weights: dict[str, int] = {}
    for connection in program.get("connections", []):
        weights[connection["target"]] = weights.get(connection["target"], 0) + connection["parameters"]
    memory = np.asarray(plan.tile_memory)
    compute = np.asarray(plan.tile_cycles.get("compute", (0,) * plan.target.tiles))
    moved = subject.traffic.matrix()
    first = len(subject.traffic.nodes) - len(plan.populations)
    rows = []
    for index, (p, place) in enumerate(zip(plan.populations, subject.places.layers, strict=True)):
        info = known.get(p.id, {})
        chips = np.unique(place.tiles // plan.target.tiles_per_chip)
        rows.append(
            {
                "id": p.id,
                "label": p.label,
                "model": info.get("model", ""),
                "equations": info.get("equations", ""),
                "neurons": p.neurons,
                "parameters": weights.get(p.id, 0) + info.get("parameters", 0) if info else None,
                "stage": p.stage,
                "tiles": ranges(place.tiles),
                "tile_count": len(place.tiles),
                "chips": ranges(chips),
                "replicas": [{"first_sample": g.first, "samples": g.count, "tiles": ranges(g.tiles)} for g in place.groups],
                "neurons_per_tile": int(place.neurons.max()),
                "blocks": len(p.blocks),
                "largest_tile_bytes": int(memory[place.tiles].max()),
                "compute": int(compute[place.tiles].max()),
                "bytes_received": float(moved[:, first + index].sum()),
                "bytes_sent": float(moved[first + index].sum()),
            }
        )
    return rows


def ranges(numbers: Any) -> list[list[int]]:
    """Encode ascending numbers as runs ``[[first, count], …]``."""
    array = np.asarray(numbers)
    if not array.size:
        return []
    starts = np.flatnonzero(np.diff(array, prepend=array[0] - 2) != 1)
    stops = np.append(starts[1:], array.size)
    return [[int(array[a]), int(b - a)] for a, b in zip(starts, stops, strict=True)]


def _buses(subject: Subject) -> list[dict[str, Any]]:
    plan = subject.plan
    return [
        {
            "id": b.id,
            "source": subject.names.get(b.source, b.source),
            **{name: getattr(b, name) for name in ("kind", "width", "lag", "capacity", "mode")},
            "relays": len(b.relays),
            "activity": plan.activity.get(b.buffer),
        }
        for b in plan.buses
    ]


def phases(subject: Subject) -> list[dict[str, Any]]:
    """Return predicted and emulated cycles per step of each phase, over all its runs."""
    plan, emulation = subject.plan, subject.emulation
    rows: list[dict[str, Any]] = []
    for p in plan.phases:
        predicted = {kind: p.runs * getattr(p, kind) for kind in CYCLE_COLOURS}
        counted = emulation.phases.get(p.name) if emulation else None
        rows.append(
            {
                **{name: getattr(p, name) for name in ("name", "part", "runs", "busiest_tile", "bytes_in")},
                "loops": [asdict(loop) for loop in p.loops],
                "once": {kind: getattr(p, kind) for kind in CYCLE_COLOURS},
                "predicted": predicted,
                "predicted_total": sum(predicted.values()),
                "share": sum(predicted.values()) / plan.cycles,
                "emulated": None if counted is None else {kind: counted[kind] for kind in CYCLE_COLOURS},
                "emulated_total": None if counted is None else sum(counted.values()),
            }
        )
    return rows


def _memory(subject: Subject) -> list[dict[str, Any]]:
    plan, tile = subject.plan, subject.plan.fullest_tile
    return [
        {"name": name, "bytes": tiles[tile], "share": tiles[tile] / plan.target.tile_bytes, "all_tiles": sum(tiles)}
        for name, tiles in plan.memory.items()
    ]


def memory_over_time(plan: Plan, emulated: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the live bytes of each superstep, by category, on the plan's fullest tile; only the peak if the plan does not record them.

    `emulated` contains the bytes on the tile that is fullest in a superstep on the emulator, by superstep.
    """
    tile = plan.fullest_tile
    moments = [(m.name, m.tile, sum(m.all_tiles.values())) for m in plan.memory_over_time]
    if not moments:
        moments = [("peak", {name: tiles[tile] for name, tiles in plan.memory.items()}, sum(plan.tile_memory))]
    return [
        {"phase": name, "tile": tile, "bytes": size, "all_tiles": everywhere, "emulated": emulated.get(name), "total": sum(size.values())}
        for name, size, everywhere in moments
    ]


def _tiles(subject: Subject) -> dict[str, Any]:
    def encoded(values: Any) -> list[int]:
        return runs(np.asarray(values).tolist())

    return tile_layout(subject, encoded) | tile_numbers(subject, encoded)


def tile_layout(subject: Subject, encode: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the grid of the tiles, and the layer, number of neurons and replica of each tile, encoded by `encode`."""
    target, places, grid = subject.plan.target, subject.places, grid_of(subject.plan.target)
    return {
        "columns": grid.columns,
        "rows": grid.rows,
        "across": grid.chips_across,
        "per_chip": target.tiles_per_chip,
        "chips": target.chips,
        "limit": target.tile_bytes,
        **{name: encode(getattr(places, name)) for name in ("owner", "neurons", "replica")},
    }


def tile_numbers(subject: Subject, encode: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the bytes and cycles of each tile by category, encoded by `encode`: predicted and, if known, emulated."""
    plan, emulation = subject.plan, subject.emulation
    counted = {} if emulation is None else {"compute": emulation.compute, "memory": emulation.memory}
    emulated = {name: tiles for name, tiles in counted.items() if tiles is not None}
    numbers: dict[str, Mapping[str, Any]] = {"memory": plan.memory, "cycles": plan.tile_cycles, "emulated": emulated}
    return {what: {name: encode(tiles) for name, tiles in by_name.items()} for what, by_name in numbers.items()}


def _traffic(subject: Subject) -> dict[str, Any]:
    traffic = subject.traffic
    return {
        "nodes": [{"id": node, "label": subject.names.get(node, node)} for node in traffic.nodes],
        "flows": [asdict(flow) for flow in sorted(traffic.flows, key=lambda flow: -flow.bytes)],
        "chips": traffic.chips.tolist(),
        "links": _wires(subject),
    }


def _wires(subject: Subject) -> list[dict[str, Any]]:
    """Return the wires between chips that carry data, busiest first; a switch has the index after the last chip."""
    target = subject.plan.target
    if target.chips == 1:
        return []
    routes = find_routes(target)
    wires = [
        {"from": a, "to": b, "links": routes.links[a, b], "bytes": size, "cycles": size / routes.links[a, b] / routes.bytes_per_cycle}
        for (a, b), size in subject.traffic.load(routes).items()
    ]
    return sorted(wires, key=lambda wire: -wire["cycles"])
