"""What windowed input gradients move and compute outside of blocks: reduction, last sums on relays, windows back to the sources."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnc.compiler.mapping.buses import Bus
from snnc.compiler.mapping.cost import worker_cycles
from snnc.compiler.mapping.gradient_windows import producer_tiles
from snnc.compiler.mapping.grouping import Ints
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.traffic import FLOAT, Layout, Traffic
from snnc.compiler.plan import GradientPlan, PartialSum, Relay

SumTable = dict[str, Ints]


def sum_table(plan: GradientPlan) -> SumTable:
    """Columns of the vertices of stage one, as arrays."""
    names = tuple(PartialSum.__dataclass_fields__)
    rows = np.array([[getattr(v, name) for name in names] for v in plan.sums], dtype=np.int64).reshape(-1, len(names))
    return {name: rows[:, n] for n, name in enumerate(names)}


def partials_to_sums(layout: Layout) -> Traffic:
    """Before B3: partial products go to the tiles that add them; a tile takes one fragment from each producer of each part."""
    traffic = Traffic.none(layout.problem)
    for bus_id, plan in layout.reductions.items():
        table = sum_table(plan)
        tiles = producer_tiles(layout.problem, layout.problem.bus[bus_id], layout.ranges)
        elements = table["samples"] * table["entries"]
        keys, at = np.unique(np.stack([table["tile"], table["part"]]), axis=1, return_inverse=True)
        size = np.bincount(at.ravel(), weights=elements)
        first, producers = (np.zeros(keys.shape[1], dtype=np.int64) for _ in range(2))
        first[at.ravel()], producers[at.ravel()] = table["first"], table["producers"]
        own = np.array([int(np.count_nonzero(tiles[a : a + n] == t)) for t, a, n in zip(keys[0], first, producers, strict=True)])
        np.add.at(traffic.received, keys[0], FLOAT * size * (producers - own))
        np.add.at(traffic.fragments, keys[0], (producers - own).astype(np.float64))
        np.add.at(traffic.sent, tiles, float(FLOAT * layout.problem.batch * plan.capacity))
    return traffic


def add_sums_to_relays(layout: Layout, traffic: Traffic) -> None:
    """Before B1: the sums of stage one go to the relays of their samples."""
    per_chip = layout.problem.target.tiles_per_chip
    for bus_id, plan in layout.reductions.items():
        relays = layout.relays[layout.problem.bus[bus_id].source]
        table = _by_sample(sum_table(plan))
        relay = np.searchsorted([r.sample for r in relays], table["sample"], side="right") - 1
        to = np.array([r.tile for r in relays])[relay]
        moved = to != table["tile"]
        np.add.at(traffic.received, to[moved], FLOAT * table["entries"][moved].astype(np.float64))
        np.add.at(traffic.sent, table["tile"][moved], FLOAT * table["entries"][moved].astype(np.float64))
        pieces = np.unique(np.stack([to, table["part"], table["tile"]])[:, moved], axis=1)
        np.add.at(traffic.fragments, pieces[0], 1.0)
        away = moved & (to // per_chip != table["tile"] // per_chip)
        np.add.at(traffic.link, to[away] // per_chip, FLOAT * table["entries"][away].astype(np.float64))


def _by_sample(table: SumTable) -> SumTable:
    """One row for each sample of each vertex."""
    rows = np.repeat(np.arange(len(table["tile"])), table["samples"])
    within = np.arange(len(rows)) - np.repeat(np.cumsum(table["samples"]) - table["samples"], table["samples"])
    return {**{name: column[rows] for name, column in table.items()}, "sample": table["sample"][rows] + within}


def reduced_bytes(layout: Layout) -> Ints:
    """Bytes of the sums of stage one on every tile."""
    found = np.zeros(layout.problem.target.tiles, dtype=np.int64)
    for plan in layout.reductions.values():
        table = sum_table(plan)
        np.add.at(found, table["tile"], FLOAT * table["samples"] * table["entries"])
    return found


def add_reduction(layout: Layout, load: Any) -> None:
    """Stage one: a vertex for each piece."""
    problem = layout.problem
    for plan in layout.reductions.values():
        table = sum_table(plan)
        rows = (table["samples"] * table["entries"] + 1) // 2
        cycles = worker_cycles(problem.costs["reduce_partials"], rows=rows, products=rows * table["producers"])
        load.add_all(table["tile"], problem.target.vertex_start_cycles + cycles)


def add_last_sums(layout: Layout, load: Any) -> None:
    """Stage two, on the relays: as many vertices as workers share a relay's window; the first entries are the full ones."""
    problem = layout.problem
    for bus_id, plan in layout.reductions.items():
        bus = problem.bus[bus_id]
        for relay in layout.relays[bus.source]:
            for samples, entries in relay_pieces(problem, bus, relay):
                rows = samples * ((entries + 1) // 2)
                cycles = worker_cycles(problem.costs["gradient_window"], samples=samples, rows=rows, products=rows * plan.parts)
                load.add(relay.tile, problem.target.vertex_start_cycles + float(cycles), 1)


def relay_pieces(problem: Problem, bus: Bus, relay: Relay) -> list[tuple[int, float]]:
    """Samples, and expected entries of each, of the vertices that share a relay's window."""
    workers, capacity, near = problem.target.workers, bus.gradient_capacity, problem.near_events(bus)
    if relay.samples >= workers:
        return [(relay.samples // workers + (w < relay.samples % workers), near) for w in range(workers)]
    pairs = (capacity + 1) // 2
    parts = min(workers // relay.samples, pairs)
    found, at = [], 0
    for part in range(parts):
        entries = min(2 * (pairs // parts + (part < pairs % parts)), capacity - at)
        found.append((1, float(min(max(near - at, 0.0), entries))))
        at += entries
    return found * relay.samples
