"""Worker cycles of the blocks of all populations in every iteration, from the events of their samples.

A block is the neurons and samples that one worker processes; blocks of one *kind* have the same cost. A block reads the events of a step
from windows: lists of ids with a fixed capacity. A connection is *drawn* if its cycles are computed from which neurons of the source send
events, measured or drawn at random (``indexed_events.py``). For other connections, only the number of events of a sample counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from snnc.compiler.ir.plan import PhaseLoop
from snnc.compiler.tiles.blocks.blocks import Blocks, BlockShape, cut_key
from snnc.compiler.tiles.blocks.grouping import Floats
from snnc.compiler.tiles.codelets.block_codelets import block_loops
from snnc.compiler.tiles.cycles.block_cycles import WindowContents, block_runs, expected, read_links, shape_cycles
from snnc.compiler.tiles.cycles.indexed_cycles import halvings, keys_passed, more_amounts, target_amounts
from snnc.compiler.tiles.cycles.load import Load, described_loops
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.mapped.network import Layer, Link
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.schedule.timeline import Sums
from snnc.compiler.tiles.supersteps.indexed_events import drawn_cycles, is_drawn
from snnc.compiler.tiles.vertices.gradient_vertices import remember
from snnc.compiler.tiles.vertices.loops import Loop, cycles_of

NOTHING = WindowContents(lambda link: 0.0, lambda link: 0.0)
"""Contents of empty windows."""


def add_blocks(layout: Layout, load: Load, part: str, layers: Iterable[Layer]) -> None:
    """Add the blocks of populations to a superstep of `part`, one of :data:`snnc.compiler.tiles.cycles.block_cycles.PARTS`."""
    problem = layout.problem
    for layer in layers:
        if (part != "forward" and not layer.gradient) or (part == "source_gradient" and not problem.deltas_into(layer)):
            continue
        blocks, where = layout.blocks(layer), layout.ranges[layer.id]
        make = partial(_source_gradients if part == "source_gradient" else _step_cycles, layout, layer, blocks, part)
        cycles = problem.memo.get((layer.id, part, layout.distinct_groups(layer), cut_key(where)), make)
        loops = partial(_loops_of_kind, layout, layer, blocks, part)
        load.add_kinds(where.tiles[blocks.place], blocks.kind, load.in_chosen(cycles), loops=loops)


def _loops_of_kind(layout: Layout, layer: Layer, blocks: Blocks, part: str, kind: int) -> tuple[PhaseLoop, ...]:
    """Return the loops of the blocks of a kind, with expected events; loops over returned gradients are left out."""
    shape, vertex = BlockShape(blocks.columns, blocks.samples, 1, blocks.odd), f"{part.replace('_', ' ')} of {layer.label}"
    described: list[PhaseLoop] = []
    runs = block_runs(layout.problem, layer, shape, blocks.of_tile, part, layout.kind_holdings(layer, blocks), expected(layout.problem))
    one_sample = np.broadcast_to(blocks.of_tile, blocks.columns.shape)[kind] == 1
    for run in runs:
        loops = run.alone if run.alone is not None and one_sample else run.loops
        described += described_loops(vertex, loops, run.amounts, kind, "" if run.link is None else _other_end(layout, layer, run.link))
    return tuple(described)


def _other_end(layout: Layout, layer: Layer, link: Link) -> str:
    end = link.source.owner if link in layer.incoming else link.target
    name = layout.problem.by_id[end].label if end in layout.problem.by_id else end
    return f", {'from' if end == link.source.owner else 'to'} {name}"


def _step_cycles(layout: Layout, layer: Layer, blocks: Blocks, part: str) -> Floats:
    problem = layout.problem
    timeline, idle = problem.timeline, problem.target.vertex_start_cycles + problem.costs[f"{part}.{layer.id}"].idle
    base = _cycles(layout, layer, blocks, part, NOTHING)
    steps = base[:, None] - idle
    drawn = [link for link in read_links(layer, part) if is_drawn(layout, link)]
    for link in drawn:
        steps = steps - _assumed_lookups(layout, layer, blocks, part, link)[:, None]
        steps = steps + drawn_cycles(layout, link, blocks, problem.costs[f"{part}.{layer.id}"], backward=part == "backward")
    for bus, cycles in _of_links(layout, layer, blocks, part, drawn, events=1).items():
        steps = steps + cycles[:, None] * timeline.shown(problem.bus[bus], part).over(blocks.first, blocks.samples)
    for bus, cycles in _of_links(layout, layer, blocks, part, drawn, passed=1).items():
        steps = steps + cycles[:, None] * _searched(layout, problem.bus[bus], part).over(blocks.first, blocks.samples)
    for bus, cycles in _per_entry(layout, layer, blocks, part).items() if part == "backward" else ():
        steps = steps + cycles[:, None] * timeline.shown(problem.bus[bus], "entries").over(blocks.first, blocks.samples)
    total: Floats = idle + timeline.active(problem.schedule.stages[layer.id]) * steps
    for back in problem.returned_buses(layer) if part == "backward" else ():
        total = total + _returned(layout, layer, blocks, back)
    return total


def _cycles(layout: Layout, layer: Layer, blocks: Blocks, part: str, contents: WindowContents) -> Any:
    shape = BlockShape(blocks.columns, blocks.samples, 1, blocks.odd)
    worker_cycles = shape_cycles(layout.problem, layer, shape, blocks.of_tile, part, layout.kind_holdings(layer, blocks), contents)
    return np.broadcast_to(np.asarray(worker_cycles, dtype=np.float64), blocks.columns.shape)


def _of_links(layout: Layout, layer: Layer, blocks: Blocks, part: str, drawn: list[Link], **more: float) -> Mapping[str, Any]:
    """Return, by bus, the cycles that :func:`_of_link` returns, summed over all links that read spikes and are not `drawn`."""
    by_bus: dict[str, Any] = {}
    for index, link in enumerate(layer.incoming):
        if link.events and (part == "forward" or link.read_backward) and link not in drawn:
            bus = layout.problem.bus_of[link.id]
            by_bus[bus] = by_bus.get(bus, 0) + _of_link(layout, layer, blocks, part, index, **more)
    return by_bus


def _of_link(layout: Layout, layer: Layer, blocks: Blocks, name: str, index: int, **more: float) -> Any:
    """Return the cycles of a connection in the vertex `name` of a block, per block of each kind.

    With ``events=1``, these are the cycles for one more spike in a sample; with ``passed=1``, those to search all keys of a table.
    """
    link, loops = layer.incoming[index], block_loops(layout.problem, layer, name)["incoming", index]
    amounts = {"samples": 0, "count": blocks.columns, "events": more.get("events", 0)}
    if link.indexed is not None:
        held = layout.kind_holdings(layer, blocks)(link.indexed, "target").largest
        amounts |= more_amounts(link, held, events=more.get("events", 0.0), passed=more.get("passed", 0.0))
    return cycles_of(loops, amounts) + 0 * blocks.columns


def _assumed_lookups(layout: Layout, layer: Layer, blocks: Blocks, part: str, link: Link) -> Any:
    """Return the cycles of the lookups that :func:`target_amounts` includes even for a window without spikes."""
    assert link.indexed is not None
    held = layout.kind_holdings(layer, blocks)(link.indexed, "target").largest
    loops = block_loops(layout.problem, layer, part)["incoming", layer.incoming.index(link)]
    nothing = {"samples": 0, "count": blocks.columns} | dict.fromkeys(more_amounts(link, held), 0)
    assumed = target_amounts(link, held, blocks.samples, 0.0, 0.0)["lookups"]
    return cycles_of(loops, nothing | {"lookups": assumed}) - cycles_of(loops, nothing) + 0 * blocks.columns


def _searched(layout: Layout, bus: Bus, part: str) -> Sums:
    """Return the fraction of a table's keys that a search passes, for the events of :meth:`EventTimeline.shown`."""
    timeline, backward = layout.problem.timeline, part == "backward"

    def passed() -> Any:
        return keys_passed(timeline.window(bus, backward=backward, number=0 if backward else timeline.rounds(backward=False)))

    return timeline.sums(f"searched {part}", bus, passed)


def _per_entry(layout: Layout, layer: Layer, blocks: Blocks, name: str) -> Mapping[str, Any]:
    """Return, by bus, the cycles of one additional entry in a sample's backward window."""
    by_bus: dict[str, Any] = {}
    for index, link in enumerate(layer.incoming):
        if layout.problem.returns(link):
            bus, loops = layout.problem.bus_of[link.id], block_loops(layout.problem, layer, name)["partials", index]
            by_bus[bus] = by_bus.get(bus, 0) + cycles_of(loops, {"samples": 0, "count": blocks.columns, "entries": 1})
    return by_bus


def _returned(layout: Layout, layer: Layer, blocks: Blocks, bus: Bus) -> Floats:
    """Return the cycles to find the block's own neurons in the window that the backward pass returned in the iteration before."""
    problem = layout.problem
    timeline, cost = problem.timeline, problem.costs[f"backward.{layer.id}"]
    first, loops = timeline.first(bus) - 1, block_loops(problem, layer, "backward")["returned", 0]

    def searches() -> Any:
        entries = timeline.entries(bus)
        spikes = np.minimum(timeline.stored(bus), entries)
        halved = halvings(spikes) + halvings(entries - spikes)
        return timeline.placed(cycles_of(loops, {"windows": 1, "searches": halved, "own": 0}), first)

    searched = timeline.sums(f"searches {cost.sample} {cost.search}", bus, searches).over(blocks.first, blocks.samples)
    back = timeline.sums("back", bus, lambda: timeline.placed(timeline.entries(bus), first)).over(blocks.first, blocks.samples)
    total: Floats = searched + _own_cycles(loops, blocks, bus) * back
    return total


def _own_cycles(loops: tuple[Loop, ...], blocks: Blocks, bus: Bus) -> Any:
    return (cycles_of(loops, {"windows": 0, "searches": 0, "own": 1}) * blocks.columns / bus.source.width)[:, None]


def _source_gradients(layout: Layout, layer: Layer, blocks: Blocks, part: str) -> Floats:
    """Return the cycles of source gradients of blocks in every iteration: [kinds, iterations].

    The backward pass counts iterations down. A connection is active in the iteration after that of each step t >= delay of its target.
    """
    problem = layout.problem
    cost, start = problem.costs[f"source_gradient.{layer.id}"], problem.target.vertex_start_cycles
    shape = BlockShape(blocks.columns, blocks.samples, 1, blocks.odd)
    holdings = layout.kind_holdings(layer, blocks)
    runs: Any = 0.0
    of_links: Any = np.zeros((len(blocks.columns), 1))
    always: Any = 0.0
    for run in block_runs(problem, layer, shape, blocks.of_tile, part, holdings, NOTHING):
        cycles = np.broadcast_to(np.asarray(run.cycles(blocks.of_tile), dtype=np.float64), blocks.columns.shape)[:, None]
        if run.link is None:
            always = always + cycles
            continue
        active = problem.timeline.active(problem.schedule.stages[run.link.target] - 1, run.link.delay)
        runs = np.maximum(runs, active)
        of_links = of_links + active * cycles
    total: Floats = start + cost.idle + runs * (cost.start - cost.idle + always) + of_links
    return total


def round_load(layout: Layout, part: str) -> Load:
    """Return the load of blocks that process further windows: all windows but the last if forward, all but the first if backward."""
    problem, backward = layout.problem, part == "backward"
    load, limited = Load(problem), {bus.id for bus in problem.limited(backward=backward)}
    for layer in problem.network.layers:
        links = [link for link in layer.incoming if problem.bus_of[link.id] in limited]
        links = [link for link in links if not backward or link.weight_gradient or problem.returns(link)]
        returning = [bus for bus in problem.returned_buses(layer) if bus.id in limited] if backward else []
        if (links or returning) and (layer.gradient or not backward):
            blocks = layout.blocks(layer)
            cycles = _rounds(layout, layer, blocks, links, backward=backward)
            for bus in returning:
                cycles = cycles + _returned_in_rounds(layout, layer, blocks, bus)
            load.add_kinds(layout.ranges[layer.id].tiles[blocks.place], blocks.kind, cycles)
    for bus_id in layout.reductions if backward else ():
        relays = layout.relays[problem.bus[bus_id].source] if bus_id in limited else ()
        samples = np.array([relay.samples for relay in relays])
        tiles = np.array([relay.tile for relay in relays], dtype=np.int64)
        load.add_vertices(tiles, remember(problem.costs), {"samples": samples})
    return load


def _rounds(layout: Layout, layer: Layer, blocks: Blocks, links: list[Link], *, backward: bool) -> Floats:
    problem, name = layout.problem, "weight_round" if backward else "gather"
    timeline, cost, loops = problem.timeline, problem.costs[f"{name}.{layer.id}"], block_loops(problem, layer, name)
    rounds, block = timeline.further_rounds(backward=backward), {"samples": blocks.samples, "count": blocks.columns}
    steps: Any = (cost.start + cycles_of(loops[None], block) + np.zeros(len(blocks.columns)))[:, None] - cost.idle
    for index, link in ((index, link) for index, link in enumerate(layer.incoming) if link in links):
        bus = problem.bus_into(link)
        if not backward or link.weight_gradient:
            shown = timeline.in_rounds(bus, rounds, backward=backward, spikes=True)
            drawn = is_drawn(layout, link, rounds)
            if link.indexed is None:
                steps = steps + (cycles_of(loops["incoming", index], block | {"events": 0}) + 0 * blocks.columns)[:, None]
            for one, values in _of_round(layout, layer, blocks, name, index, shown, drawn=drawn):
                steps = steps + one[:, None] * Sums(values).over(blocks.first, blocks.samples)
            if drawn:
                steps = steps + drawn_cycles(layout, link, blocks, cost, backward=backward, further=True)
        if backward and problem.returns(link):
            partials = loops["partials", index]
            one = cycles_of(partials, {"samples": 0, "count": blocks.columns, "entries": 1})
            entries = Sums(timeline.in_rounds(bus, rounds, backward=True, spikes=False))
            steps = steps + cycles_of(partials, block | {"entries": 0})[:, None]
            steps = steps + one[:, None] * entries.over(blocks.first, blocks.samples)
    active = timeline.active(problem.schedule.stages[layer.id])[rounds.iteration]
    total: Floats = problem.target.vertex_start_cycles + cost.idle + active * steps
    return total


def _returned_in_rounds(layout: Layout, layer: Layer, blocks: Blocks, bus: Bus) -> Floats:
    """Return [kinds, rounds]: cycles to find a block's own neurons in the window that returns from the previous round."""
    problem = layout.problem
    timeline, loops = problem.timeline, block_loops(problem, layer, "weight_round")["returned", 0]
    rounds = timeline.further_rounds(backward=True)
    entries, spikes = (timeline.in_rounds(bus, rounds, backward=True, spikes=spikes, later=-1) for spikes in (False, True))
    shown = timeline.active(timeline.first(bus))[rounds.iteration][:, None]
    searches = cycles_of(loops, {"windows": shown, "searches": halvings(spikes) + halvings(entries - spikes), "own": 0})
    total: Floats = Sums(searches).over(blocks.first, blocks.samples)
    total = total + _own_cycles(loops, blocks, bus) * Sums(entries).over(blocks.first, blocks.samples)
    return total


def _of_round(layout: Layout, layer: Layer, blocks: Blocks, name: str, index: int, shown: Any, *, drawn: bool) -> Iterator[tuple[Any, Any]]:
    """Yield pairs: cycles per unit of work for each kind of block, and the units in each sample (such as events).

    `shown` are the numbers of events in further windows: [rounds, samples]. The cycles of :func:`drawn_cycles` are left out if `drawn`.
    """
    link, loops = layer.incoming[index], block_loops(layout.problem, layer, name)["incoming", index]
    if link.indexed is not None:
        held = layout.kind_holdings(layer, blocks)(link.indexed, "target").largest
        nothing = {"samples": 0, "count": blocks.columns} | dict.fromkeys(more_amounts(link, held), 0)
        yield cycles_of(loops, nothing | {"searches": held["searched"]}) + 0 * blocks.columns, halvings(shown)
        if not drawn:
            lookups = target_amounts(link, held, 1, 0.0, 0.0)["lookups"]
            yield cycles_of(loops, nothing | {"lookups": lookups}) + 0 * blocks.columns, shown > 0
            yield _of_link(layout, layer, blocks, name, index, passed=1), keys_passed(shown)
    if not drawn:
        yield _of_link(layout, layer, blocks, name, index, events=1), shown
