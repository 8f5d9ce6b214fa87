"""Find the bottlenecks of a network on its machine, and describe them in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.plan import Phase, Plan
from snnc.compiler.machines.chip_links import Flows, find_routes
from snnc.compiler.tiles.exchange.layer_traffic import StepTraffic
from snnc.compiler.tiles.exchange.places import FREE, RELAYED, LayerPlaces
from snnc.report.pictures.timeline import KINDS

MOVED: Final[Mapping[str, str]] = {
    "forward: relays": "spikes to relays",
    "forward: neurons": "windows",
    "loss: scores": "records",
    "loss: adjoints": "records",
    "loss: sum": "adjoints",
    "backward: relays and source gradients": "deltas",
    "recompute: neurons": "windows",
    "backward: neurons": "windows, backward",
    "update: squares": "gradients",
    "update: optimiser": "gradients",
    "update: replicas": "new weights",
    "update: weight copies": "weights to copies",
}
"""Kind of traffic in the exchange before each phase, by name of the phase."""
LINKED: Final = 0.9
"""Links are reported as the bottleneck of an exchange if they are busy for at least this share of its time."""


@dataclass(frozen=True)
class Limit:
    """A bottleneck in "time", "memory" or "balance".

    `share` is the fraction of the time of a training step or forward pass, or of the tile's memory; for "balance", the ratio of the time
    with all work spread evenly to the predicted time. If the plan lacks the former, it is the ratio of the mean to the largest compute time
    of the tiles. If the plan lacks the compute times of tiles, it is the share of tiles in use.
    """

    about: str
    sentence: str
    share: float


def find_limits(plan: Plan, places: LayerPlaces, traffic: StepTraffic, names: Mapping[str, str]) -> tuple[Limit, ...]:
    """Return the predicted bottleneck in time, the fullest tile, and the balance of the work; `names` are labels by id."""
    return (_time(plan, places, traffic, names), _memory(plan, places, names), _balance(plan, places))


def busiest_vertex(plan: Plan) -> dict[str, Any] | None:
    """Return the slowest vertex of the superstep that computes longest, and its loops, as JSON types; None without loops in the plan."""
    phase = max(plan.phases, key=lambda p: p.runs * p.compute)
    total = sum(loop.total for loop in phase.loops)
    if not total:
        return None
    loops = [
        {"name": loop.name, "trips": loop.trips, "cycles_a_trip": loop.cycles, "cycles": loop.total, "share": loop.total / total}
        for loop in phase.loops
    ]
    return {"phase": phase.name, "tile": phase.busiest_tile, "vertex": phase.loops[0].vertex, "loops": loops}


def holder(plan: Plan, places: LayerPlaces, tile: int) -> str:
    """Return the label of the layer on a tile, ``"relays"`` or ``"free"``."""
    owner = int(places.owner[tile])
    return "free" if owner == FREE else "relays" if owner == RELAYED else plan.populations[owner].label


def amount(size: float) -> str:
    """Format a size with a binary prefix and three digits, as data sheets give the memory of tiles."""
    for unit, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:{'.3g' if size < 999.5 * scale else '.0f'}} {unit}"
    return f"{size:.0f} bytes"


def _time(plan: Plan, places: LayerPlaces, traffic: StepTraffic, names: Mapping[str, str]) -> Limit:
    phase, kind = max(((p, k) for p in plan.phases for k in KINDS), key=lambda pair: pair[0].runs * getattr(pair[0], pair[1]))
    share = phase.runs * getattr(phase, kind) / plan.cycles
    all_of = {k: sum(p.runs * getattr(p, k) for p in plan.phases) / plan.cycles for k in KINDS}
    loop = ""
    what = f"the {kind} of “{phase.name}”" if kind != "sync" else f"waiting for all tiles before “{phase.name}”"
    if kind == "compute":
        what += f" on tile {phase.busiest_tile:,} ({holder(plan, places, phase.busiest_tile)})"
        if phase.loops:
            busiest_loop, total = phase.loops[0], sum(loop.total for loop in phase.loops)
            loop = f" Its slowest vertex spends most cycles on {busiest_loop.name} ({100 * busiest_loop.total / total:.0f} %)."
    elif kind == "exchange":
        what += _exchange(plan, phase, traffic, names)
    rest = ", ".join(f"{k} {100 * all_of[k]:.0f} %" for k in ("compute", "exchange", "sync"))
    sentence = f"{what[0].upper()}{what[1:]} takes {100 * share:.0f} % of the step; in total {rest}.{loop}"
    if plan.host_seconds is not None and plan.host_seconds > plan.seconds:
        host, step = 1e3 * plan.host_seconds, 1e3 * plan.seconds
        sentence += f" The inputs take longer to arrive from the host: {host:.3g} ms before each step of {step:.3g} ms."
    return Limit("time", sentence, share)


def _exchange(plan: Plan, phase: Phase, traffic: StepTraffic, names: Mapping[str, str]) -> str:
    """Return text about the largest flow of an exchange, and whether the links between IPUs or the tiles limit the exchange."""
    kind = MOVED.get(phase.name)
    flows = [f for f in traffic.flows if f.kind == kind]
    if kind is None or not flows:
        return ""
    largest = max(flows, key=lambda f: f.bytes)
    source, target = (names.get(traffic.nodes[n], traffic.nodes[n]) for n in (largest.source, largest.target))
    cycles = find_routes(plan.target).cycles(traffic.links.get(kind, Flows())) / phase.runs
    linked = cycles >= LINKED * phase.exchange
    where = "over the links between IPUs" if linked else f"{phase.bytes_in:,} bytes into the busiest tile a run"
    return f" (most of it {kind} from {source} to {target}, {where})"


def _memory(plan: Plan, places: LayerPlaces, names: Mapping[str, str]) -> Limit:
    tile = plan.fullest_tile
    size = plan.tile_memory[tile]
    name = max(plan.memory, key=lambda category: plan.memory[category][tile])
    sources = list(dict.fromkeys(names.get(b.source, b.source) for b in plan.buses if any(r.tile == tile for r in b.relays)))
    whose = f" of {', '.join(sources[:3])}{' …' if len(sources) > 3 else ''}" if name == "relays" and sources else ""
    where = holder(plan, places, tile)
    who = f"{tile:,}" if where == "relays" else f"{tile:,} ({where})"
    share = size / plan.target.tile_bytes
    used = f"{size / 1024:,.0f} of {plan.target.tile_bytes / 1024:,.0f} KiB ({100 * share:.0f} %)"
    largest = plan.memory[name][tile]
    most = f"{name}{whose} ({f'{largest:,.0f} bytes' if largest < 4096 else f'{largest / 1024:,.0f} KiB'})"
    return Limit("memory", f"The fullest tile, {who}, uses {used}, most of it {most}.", share)


def _balance(plan: Plan, places: LayerPlaces) -> Limit:
    compute = np.asarray(plan.tile_cycles.get("compute", ()), dtype=np.float64)
    used, tiles = len(places.used), plan.target.tiles
    head = f"{used:,} of {tiles:,} tiles are used"
    if plan.bound_cycles > 0:
        head = f"The step takes {plan.cycles / plan.bound_cycles:.3g} times as long as with all work spread evenly; {head}"
    if not compute.size or not compute.max():
        return Limit("balance", f"{head}.", used / tiles)
    evenly = float(compute.mean() / compute.max())
    share = plan.bound_cycles / plan.cycles if plan.bound_cycles > 0 else evenly
    busiest = int(compute.argmax())
    where = f"the busiest, {busiest:,} ({holder(plan, places, busiest)})"
    return Limit("balance", f"{head}; tiles compute on average {100 * evenly:.0f} % as long as {where}.", share)
