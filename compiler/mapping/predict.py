"""Predicted cycles of every superstep: the busiest tile computes, all tiles wait for the barrier, the busiest tile receives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnc.compiler.mapping.block_cycles import block_cycles, vertices
from snnc.compiler.mapping.cost import worker_cycles
from snnc.compiler.mapping.grouping import Floats, Ints, ceil_div, column_groups, sample_groups
from snnc.compiler.mapping.network import learned_elements
from snnc.compiler.mapping.relays import relay_cycles, relay_words
from snnc.compiler.mapping.tile_range import TileRange
from snnc.compiler.mapping.traffic import (
    Layout,
    Traffic,
    adjoints_to_blocks,
    deltas_to_sources,
    flags_to_one_tile,
    gradients_to_shares,
    masks_to_relays,
    records_to_loss,
    weights_to_copies,
    weights_to_replicas,
    windows_to_blocks,
)
from snnc.compiler.plan import Phase


class Load:
    """Worker cycles on every tile: of the longest vertex, and of all vertices together."""

    def __init__(self, layout: Layout) -> None:
        self.workers = layout.problem.target.workers
        self.longest: Floats = np.zeros(layout.problem.target.tiles)
        self.total: Floats = np.zeros(layout.problem.target.tiles)

    def add(self, tiles: Ints | int, cycles: Any, number: Any) -> None:
        """Give tiles `number` vertices of `cycles` each."""
        self.longest[tiles] = np.maximum(self.longest[tiles], cycles)
        self.total[tiles] += np.asarray(cycles) * np.asarray(number)

    @property
    def cycles(self) -> Floats:
        """Tile cycles: a worker issues once every `workers` cycles, and vertices are dealt to the workers that are free."""
        found: Floats = np.maximum(self.workers * self.longest, self.total)
        return found


@dataclass(frozen=True, eq=False)
class Step:
    """A superstep before it is summed up."""

    name: str
    part: str
    runs: int
    load: Load
    traffic: Traffic


def supersteps(layout: Layout) -> tuple[Step, ...]:
    """All supersteps of a training step (of a forward pass without training), in order."""
    problem = layout.problem
    runs = problem.schedule.iterations(problem.steps)
    found = [
        Step("forward: relays", "forward", runs, relay_load(layout, compact=True), masks_to_relays(layout)),
        *_overflow_test(layout, "forward", runs),
        Step("forward: neurons", "forward", runs, block_load(layout, "forward"), windows_to_blocks(layout)),
    ]
    if not problem.training:
        return tuple(found)
    sources = relay_load(layout, compact=False)
    _add_blocks(layout, sources, "source_gradient")
    return (
        *found,
        Step("loss: adjoints", "loss", 1, _loss_load(layout), records_to_loss(layout)),
        Step("loss: sum", "loss", 1, _one_tile(layout, "reduce", problem.batch), adjoints_to_blocks(layout)),
        Step("backward: relays and source gradients", "backward", runs, sources, deltas_to_sources(layout)),
        *_overflow_test(layout, "backward", runs),
        Step("backward: neurons", "backward", runs, block_load(layout, "backward"), windows_to_blocks(layout, backward=True)),
        *_update_steps(layout),
        Step("update: weight copies", "update", 1, _copy_load(layout), weights_to_copies(layout)),
    )


def exchange_cycles(layout: Layout, traffic: Traffic) -> Floats:
    """Cycles that each tile receives or sends: its bytes, and a cost for each fragment that it receives."""
    target = layout.problem.target
    received = np.ceil(traffic.received / target.exchange_bytes_per_cycle) + target.fragment_cycles * traffic.fragments
    if not traffic.received.any():
        return received
    found: Floats = np.maximum(received, np.ceil(traffic.sent / target.exchange_bytes_per_cycle))
    return found


def cycles_by_tile(layout: Layout, steps: tuple[Step, ...]) -> dict[str, tuple[int, ...]]:
    """Cycles in which each tile computes and exchanges in a whole training step."""
    compute = np.sum([step.runs * step.load.cycles for step in steps], axis=0)
    exchange = np.sum([step.runs * exchange_cycles(layout, step.traffic) for step in steps], axis=0)
    return {"compute": tuple(compute.astype(np.int64).tolist()), "exchange": tuple(exchange.astype(np.int64).tolist())}


def phase(layout: Layout, step: Step) -> Phase:
    """Sum up one superstep."""
    target, traffic, cycles = layout.problem.target, step.traffic, step.load.cycles
    tile_cycles = exchange_cycles(layout, traffic)
    over_links = float(traffic.link.max(initial=0.0)) / target.link_bytes_per_second * target.clock_hz
    barrier = target.link_sync_cycles if layout.placement.chips > 1 else target.sync_cycles
    return Phase(
        name=step.name,
        part=step.part,
        runs=step.runs,
        compute=float(cycles.max()),
        sync=barrier + target.superstep_cycles,
        exchange=max(float(tile_cycles.max()), float(np.ceil(over_links))),
        bytes_in=int(traffic.received.max()),
        busiest_tile=int(cycles.argmax()),
    )


# ---- who computes what -----------------------------------------------------------------------------------------------


def block_load(layout: Layout, part: str) -> Load:
    """Blocks of all populations."""
    load = Load(layout)
    _add_blocks(layout, load, part)
    return load


def _add_blocks(layout: Layout, load: Load, part: str) -> None:
    problem = layout.problem
    for layer in problem.network.layers:
        if part != "forward" and not layer.gradient:
            continue
        if part == "source_gradient" and not problem.deltas_into(layer):
            continue
        where = layout.range_of(layer)
        cut, held = layout.cut_of(layer), (where.tile_neurons, where.tile_samples)
        load.add(where.tiles, block_cycles(problem, layer, cut, *held, part), vertices(problem, cut, *held))


def relay_load(layout: Layout, *, compact: bool) -> Load:
    """Relays, one vertex each; `compact` when masks become ids as well."""
    problem, load = layout.problem, Load(layout)
    for source in problem.network.sources:
        words = relay_words(problem, source, layout.ranges)
        for relay in layout.relays[source]:
            load.add(relay.tile, relay_cycles(problem, source, words, relay.samples, compact=compact), 1)
    return load


def _overflow_test(layout: Layout, part: str, runs: int) -> tuple[Step, ...]:
    """Exact mode with limited windows asks in every iteration whether further windows are needed."""
    limited = layout.problem.limited
    if not limited:
        return ()
    flags = sum(len(layout.relays[bus.source]) for bus in limited)
    return (Step(f"{part}: test for further windows", part, runs, _one_tile(layout, "reduce", flags), flags_to_one_tile(layout)),)


def _one_tile(layout: Layout, codelet: str, elements: int) -> Load:
    load = Load(layout)
    cost = layout.problem.costs[codelet]
    tile = layout.loss_tiles[0] if layout.loss_tiles else 0
    load.add(tile, layout.problem.target.vertex_start_cycles + worker_cycles(cost, elements=elements), 1)
    return load


def _loss_load(layout: Layout) -> Load:
    problem, load = layout.problem, Load(layout)
    elements = problem.steps * problem.network.loss_width
    cycles = problem.target.vertex_start_cycles + worker_cycles(problem.costs["loss"], samples=1, elements=elements)
    for tile in layout.loss_tiles:
        load.add(tile, cycles, 1)
    return load


def _update_steps(layout: Layout) -> tuple[Step, ...]:
    """The optimiser; around it, when populations are replicated, what their replicas exchange."""
    nothing = Traffic.none(layout.problem)
    if all(where.replicas == 1 for where in layout.placement.ranges):
        return (Step("update: optimiser", "update", 1, _update_load(layout), nothing),)
    return (
        Step("update: private gradients", "update", 1, _private_load(layout), nothing),
        Step("update: optimiser", "update", 1, _update_load(layout), gradients_to_shares(layout)),
        Step("update: replicas", "update", 1, Load(layout), weights_to_replicas(layout)),
    )


def _private_load(layout: Layout) -> Load:
    """Each column group of a replicated population sums its private gradients into the first of them."""
    problem, load = layout.problem, Load(layout)
    for where, groups, elements in _updated(layout):
        if where.replicas > 1:
            shares = sample_groups(where.tile_neurons, where.columns, problem.target.workers, where.tile_samples)
            cost = worker_cycles(problem.costs["update"], products=(shares - 1) * ceil_div(elements, 2))
            load.add(where.tiles, problem.target.vertex_start_cycles + cost, groups)
    return load


def _update_load(layout: Layout) -> Load:
    """The first block of each column group sums gradients and updates its share of the parameters."""
    problem, load = layout.problem, Load(layout)
    for where, groups, elements in _updated(layout):
        shares = sample_groups(where.tile_neurons, where.columns, problem.target.workers, where.tile_samples)
        mine, parts = (elements, shares) if where.replicas == 1 else (ceil_div(elements, where.replicas), where.replicas)
        cost = worker_cycles(problem.costs["update"], elements=mine, products=(parts - 1) * ceil_div(mine, 2))
        load.add(where.tiles, problem.target.vertex_start_cycles + cost, groups)
    return load


def _updated(layout: Layout) -> Iterator[tuple[TileRange, Ints, Any]]:
    """Populations with learned parameters: column groups of every tile, and elements of the largest group."""
    for layer in layout.problem.network.layers:
        learned = sum(learned_elements(layer).values())
        if learned:
            where = layout.range_of(layer)
            groups = np.maximum(column_groups(where.tile_neurons, where.columns), 1)
            yield where, groups, learned * ceil_div(where.tile_neurons, groups)


def _copy_load(layout: Layout) -> Load:
    problem, load = layout.problem, Load(layout)
    for layer in problem.network.layers:
        where = layout.range_of(layer)
        outputs = sum(link.outputs for link in layer.outgoing if link.dense and link.input_gradient and link.weight_gradient)
        if outputs:
            groups = column_groups(where.tile_neurons, where.columns)
            cost = worker_cycles(problem.costs["transpose"], elements=outputs * ceil_div(where.tile_neurons, groups))
            load.add(where.tiles, problem.target.vertex_start_cycles + cost, groups)
    return load
