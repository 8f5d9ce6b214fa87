"""Worker cycles of the blocks of all populations in every iteration, from the events of their samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from snnc.compiler.tiles.cycles.block_cycles import WindowContents, read_links, shape_cycles
from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.gradients.gradient_counts import halvings, returned_buses
from snnc.compiler.tiles.indexed.indexed_cycles import keys_passed, round_counts, target_counts
from snnc.compiler.tiles.indexed.indexed_events import drawn_cycles, is_drawn
from snnc.compiler.tiles.network import Layer, Link
from snnc.compiler.tiles.placement.block_shapes import BlockShape
from snnc.compiler.tiles.placement.blocks import Blocks, cut_key
from snnc.compiler.tiles.placement.grouping import Floats
from snnc.compiler.tiles.relays.buses import Bus
from snnc.compiler.tiles.schedule.timeline import Sums
from snnc.compiler.tiles.vertices.cost import EVENT_SWEEP, VALUE_SWEEP, CodeletCost, column_sweeps, worker_cycles

NOTHING = WindowContents(lambda link: 0.0, lambda link: 0.0, lambda link: 0.0)


def add_blocks(layout: Layout, load: Load, part: str, layers: Iterable[Layer]) -> None:
    """Add the blocks of populations to a superstep of `part`, one of :data:`snnc.compiler.tiles.cycles.block_cycles.PARTS`."""
    problem = layout.problem
    for layer in layers:
        if part != "forward" and not layer.gradient:
            continue
        if part == "source_gradient" and not problem.deltas_into(layer):
            continue
        blocks, where = layout.blocks(layer), layout.range_of(layer)
        cycles = _kinds(layout, layer, blocks, part)
        load.add_kinds(where.tiles[blocks.place], blocks.kind, load.looked_at(cycles))


def _kinds(layout: Layout, layer: Layer, blocks: Blocks, part: str) -> Floats:
    """[kinds, iterations]: cycles of all blocks of a kind, which placements with the same cut share."""
    make = partial(_source_gradients if part == "source_gradient" else _neurons, layout, layer, blocks, part)
    found: Floats = layout.problem.memo.get((layer.id, part, layout.distinct_groups(layer), cut_key(layout.range_of(layer))), make)
    return found


def _neurons(layout: Layout, layer: Layer, blocks: Blocks, part: str) -> Floats:
    """[kinds, iterations]: cycles of forward or backward."""
    problem = layout.problem
    timeline, idle = problem.timeline, problem.target.vertex_start_cycles + problem.costs[f"{part}.{layer.id}"].idle
    base = _cycles(layout, layer, blocks, part, NOTHING)
    steps = base[:, None] - idle
    drawn = [link for link in read_links(problem, layer, part) if is_drawn(layout, link)]
    for link in drawn:
        steps = steps + drawn_cycles(layout, link, blocks, problem.costs[f"{part}.{layer.id}"], backward=part == "backward")
    for bus, cycles in _per_event(layout, layer, blocks, part, base, drawn).items():
        steps = steps + cycles[:, None] * timeline.shown(problem.bus[bus], part).over(blocks.first, blocks.samples)
    for bus, cycles in _per_search(layout, layer, blocks, part, base).items():
        steps = steps + cycles[:, None] * _searched(layout, problem.bus[bus], part).over(blocks.first, blocks.samples)
    for bus, cycles in _per_entry(layout, layer, blocks, base).items() if part == "backward" else ():
        steps = steps + cycles[:, None] * entries_of(layout, problem.bus[bus]).over(blocks.first, blocks.samples)
    found: Floats = idle + timeline.active(problem.schedule.stages[layer.id]) * steps
    for back in returned_buses(problem, layer) if part == "backward" else ():
        found = found + _returned(layout, layer, blocks, back)
    return found


def _cycles(layout: Layout, layer: Layer, blocks: Blocks, part: str, seen: WindowContents) -> Any:
    shape = BlockShape(blocks.columns, blocks.samples, 1, blocks.odd)
    found = shape_cycles(layout.problem, layer, shape, blocks.of_tile, part, layout.kind_holdings(layer, blocks), seen)
    return np.broadcast_to(np.asarray(found, dtype=np.float64), blocks.columns.shape)


def _per_event(layout: Layout, layer: Layer, blocks: Blocks, part: str, base: Floats, drawn: list[Link]) -> Mapping[str, Any]:
    """Cycles per event of a sample, by bus, excluding links that are `drawn`; `base`: cycles without events."""
    of = layout.problem.bus_of
    others = {link.id: of[link.id] for link in read_links(layout.problem, layer, part) if link.events and link not in drawn}
    mine = {bus: replace(NOTHING, events=_one(others, bus)) for bus in others.values()}
    return {bus: (_cycles(layout, layer, blocks, part, seen) - base) / blocks.samples for bus, seen in mine.items()}


def _per_search(layout: Layout, layer: Layer, blocks: Blocks, part: str, base: Floats) -> Mapping[str, Any]:
    """The same for a search that passes all keys of the tables of indexed connections."""
    of = layout.problem.bus_of
    links = [link for link in read_links(layout.problem, layer, part) if link.events and link.indexed is not None]
    mine = {of[link.id]: replace(NOTHING, passed=_one(of, of[link.id])) for link in links}
    return {bus: (_cycles(layout, layer, blocks, part, seen) - base) / blocks.samples for bus, seen in mine.items()}


def _searched(layout: Layout, bus: Bus, part: str) -> Sums:
    """Shares of the keys that searches for the events of :meth:`Timeline.shown` pass."""
    timeline, backward = layout.problem.timeline, part == "backward"

    def passed() -> Any:
        return keys_passed(timeline.window(bus, backward=backward, number=0 if backward else timeline.rounds(backward=False)))

    return timeline.sums(f"searched {part}", bus, passed)


def _per_entry(layout: Layout, layer: Layer, blocks: Blocks, base: Floats) -> Mapping[str, Any]:
    """The same for entries of backward windows."""
    of = layout.problem.bus_of
    back = [link for link in layer.incoming if layout.problem.returns(link)]
    mine = {of[link.id]: replace(NOTHING, entries=_one(of, of[link.id])) for link in back}
    return {bus: (_cycles(layout, layer, blocks, "backward", seen) - base) / blocks.samples for bus, seen in mine.items()}


def _one(of: Mapping[str, str], bus: str) -> Callable[[Link], float]:
    return lambda link: float(of.get(link.id) == bus)


def entries_of(layout: Layout, bus: Bus) -> Sums:
    """Contents of the first backward window in each iteration."""
    timeline = layout.problem.timeline
    return timeline.sums("entries", bus, lambda: timeline.placed(timeline.entries(bus), timeline.first(bus)))


def _returned(layout: Layout, layer: Layer, blocks: Blocks, bus: Bus) -> Floats:
    """A block finds its own neurons in the returning part of the window of the previous iteration, which is k + 1."""
    problem = layout.problem
    timeline, cost = problem.timeline, problem.costs[f"backward.{layer.id}"]
    first = timeline.first(bus) - 1

    def searches() -> Any:
        entries = timeline.entries(bus)
        spikes = np.minimum(timeline.stored(bus), entries)
        return timeline.placed(cost.sample + cost.search * (halvings(spikes) + halvings(entries - spikes)), first)

    looked = timeline.sums(f"searches {cost.sample} {cost.search}", bus, searches).over(blocks.first, blocks.samples)
    back = timeline.sums("back", bus, lambda: timeline.placed(timeline.entries(bus), first)).over(blocks.first, blocks.samples)
    found: Floats = looked + (cost.id * blocks.columns / bus.source.width)[:, None] * back
    return found


def _source_gradients(layout: Layout, layer: Layer, blocks: Blocks, part: str) -> Floats:
    """[kinds, iterations]: blocks whose outputs receive gradients, in the iterations that follow a step of any of their targets."""
    problem = layout.problem
    targets = sorted({problem.schedule.stages[target] - 1 for target, _ in problem.deltas_into(layer)})
    idle = problem.target.vertex_start_cycles + problem.costs[f"source_gradient.{layer.id}"].idle
    steps = (_cycles(layout, layer, blocks, part, NOTHING) - idle) / len(targets)
    found: Floats = idle + steps[:, None] * sum(problem.timeline.active(first) for first in targets)
    return found


# ---- further windows -------------------------------------------------------------------------------------------------


def round_load(layout: Layout, part: str) -> Load:
    """Blocks add further windows: forward all but the last, backward all but the first."""
    problem, backward = layout.problem, part == "backward"
    load, limited = Load(problem), {bus.id for bus in problem.limited(backward=backward)}
    for layer in problem.network.layers:
        links = [link for link in layer.incoming if problem.bus_of[link.id] in limited]
        links = [link for link in links if not backward or link.weight_gradient or problem.returns(link)]
        came = [bus for bus in returned_buses(problem, layer) if bus.id in limited] if backward else []
        if (links or came) and (layer.gradient or not backward):
            blocks = layout.blocks(layer)
            cycles = _rounds(layout, layer, blocks, links, backward=backward)
            for bus in came:
                cycles = cycles + _came(layout, layer, blocks, bus)
            load.add_kinds(layout.range_of(layer).tiles[blocks.place], blocks.kind, cycles)
    for bus_id in layout.reductions if backward else ():
        relays = layout.relays[problem.bus[bus_id].source] if bus_id in limited else ()
        samples = np.array([relay.samples for relay in relays])
        cost = worker_cycles(problem.costs["transpose"], elements=samples)
        load.add(np.array([relay.tile for relay in relays], dtype=np.int64), problem.target.vertex_start_cycles + cost)
    return load


def _rounds(layout: Layout, layer: Layer, blocks: Blocks, links: list[Link], *, backward: bool) -> Floats:
    """[kinds, rounds]."""
    problem = layout.problem
    timeline, cost = problem.timeline, problem.costs[f"{'weight_round' if backward else 'gather'}.{layer.id}"]
    rounds, start = timeline.further_rounds(backward=backward), problem.target.vertex_start_cycles
    learned = [link for link in links if not backward or link.weight_gradient]
    back = [link for link in links if backward and problem.returns(link)]
    dense, held = sum(link.dense for link in learned) + len(back), blocks.samples * blocks.columns
    sweeps = sum(link.dense for link in learned) * column_sweeps(blocks.columns, EVENT_SWEEP)
    sweeps = blocks.samples * (sweeps + len(back) * column_sweeps(blocks.columns, VALUE_SWEEP))
    fixed = worker_cycles(cost, samples=blocks.samples, sweeps=sweeps, held=held * dense)
    steps: Any = np.asarray(fixed, dtype=np.float64)[:, None] - cost.idle
    for link in learned:
        shown = timeline.in_rounds(problem.bus[problem.bus_of[link.id]], rounds, backward=backward, spikes=True)
        drawn = is_drawn(layout, link, rounds)
        for one, values in _of_round(layout, layer, blocks, cost, link, shown, drawn=drawn):
            steps = steps + one[:, None] * Sums(values).over(blocks.first, blocks.samples)
        if drawn:
            steps = steps + drawn_cycles(layout, link, blocks, cost, backward=backward, further=True)
    for link in back:
        bus = problem.bus[problem.bus_of[link.id]]
        one = worker_cycles(replace(cost, start=0), columns=blocks.columns, entries=1)
        entries = Sums(timeline.in_rounds(bus, rounds, backward=True, spikes=False))
        steps = steps + one[:, None] * entries.over(blocks.first, blocks.samples)
    found: Floats = start + cost.idle + timeline.active(problem.schedule.stages[layer.id])[rounds.iteration] * steps
    return found


def _came(layout: Layout, layer: Layer, blocks: Blocks, bus: Bus) -> Floats:
    """[kinds, rounds]: a block finds its own neurons in the returned part of the previous window."""
    problem = layout.problem
    timeline, cost = problem.timeline, problem.costs[f"weight_round.{layer.id}"]
    rounds = timeline.further_rounds(backward=True)
    entries, spikes = (timeline.in_rounds(bus, rounds, backward=True, spikes=spikes, later=-1) for spikes in (False, True))
    shown = timeline.active(timeline.first(bus))[rounds.iteration][:, None]
    searches = shown * cost.sample + cost.search * (halvings(spikes) + halvings(entries - spikes))
    found: Floats = Sums(searches).over(blocks.first, blocks.samples)
    own = (cost.id * blocks.columns / bus.source.width)[:, None]
    return found + own * Sums(entries).over(blocks.first, blocks.samples)


def _of_round(
    layout: Layout, layer: Layer, blocks: Blocks, cost: CodeletCost, link: Link, shown: Any, *, drawn: bool
) -> Iterator[tuple[Any, Any]]:
    """Cycles of every kind of block, and their factors, for the `shown` events of a further window.

    Events that are `drawn` are not included.
    """
    plain, columns = replace(cost, start=0), blocks.columns
    if link.indexed is None:
        counts: dict[str, Any] = {"events": 1} if link.dense else {"ids": 1}
        yield worker_cycles(plain, columns=columns, **counts) + 0 * columns, shown
        return
    held = layout.kind_holdings(layer, blocks)(link.indexed, "target").largest
    yield worker_cycles(plain, searches=held["searched"]) + 0 * columns, halvings(shown)
    yield worker_cycles(plain, lookups=target_counts(link, held, 1, 0.0, 0.0)["lookups"]) + 0 * columns, shown > 0
    yield worker_cycles(plain, columns=columns, **round_counts(link, held, passed=1)) + 0 * columns, keys_passed(shown)
    if not drawn:
        yield worker_cycles(plain, columns=columns, **round_counts(link, held, events=1)) + 0 * columns, shown


def limited_sources(buses: Iterable[Bus]) -> dict[Any, list[Bus]]:
    """Buses by their source."""
    found: dict[Any, list[Bus]] = {}
    for bus in buses:
        found.setdefault(bus.source, []).append(bus)
    return found
