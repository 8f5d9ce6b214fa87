"""Supersteps of a training step in order, and their predicted cycles: compute and exchange of the busiest tile, and the barrier.

Relays are tiles that store the spikes or values of a source, and send those of one step as a window to the blocks that read them.
Clocks are vertices that count iterations, usually on the first tile of each chip, which sends the number to the others.
docs/decisions/0001-poplar-program.md defines the supersteps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.ir.plan import Phase
from snnc.compiler.tiles.blocks.grouping import Floats, ceil_div, even_neurons, mask_unit
from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.indexed_traffic import deltas_by_rows
from snnc.compiler.tiles.exchange.loss_traffic import factor_to_losses, losses_to_one_tile, records_or_adjoints
from snnc.compiler.tiles.exchange.traffic import (
    ExchangeTraffic,
    Layout,
    clock_to_boundaries,
    deltas_to_sources,
    masks_to_relays,
    requests_exchange,
    returned_to_blocks,
    windows_to_blocks,
    with_clock,
)
from snnc.compiler.tiles.gradients.gradient_traffic import (
    add_last_sums,
    add_reduction,
    add_sums_of_rounds,
    add_sums_to_relays,
    partials_to_sums,
)
from snnc.compiler.tiles.gradients.parameter_copies import local_copy_cycles
from snnc.compiler.tiles.gradients.update_steps import copy_steps, update_steps
from snnc.compiler.tiles.prediction.passes import in_passes, moments_steps
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_cycles import boundary_cycles, mask_rows
from snnc.compiler.tiles.relays.relay_workers import bits_cycles
from snnc.compiler.tiles.schedule.timeline import Sums
from snnc.compiler.tiles.schedule.window_test import ROOT, level_reads
from snnc.compiler.tiles.supersteps.block_work import add_blocks, round_load
from snnc.compiler.tiles.supersteps.relay_load import add_relays, clock_load, relay_load
from snnc.compiler.tiles.supersteps.streaming import row_copy
from snnc.compiler.tiles.supersteps.superstep import SuperstepDraft
from snnc.compiler.tiles.vertices.control_vertices import CLOCK_VERTEX, answer, count_down, known, most, most_of_workers
from snnc.compiler.tiles.vertices.loops import LoopsByPlace, cycles_of
from snnc.compiler.tiles.vertices.loss_vertices import loss_scores, loss_sum, sample_loss
from snnc.compiler.tiles.vertices.parameter_vertices import schedule
from snnc.compiler.tiles.vertices.relay_loops import boundary_loops, next_window_loops
from snnc.compiler.tiles.vertices.relay_vertices import copy_mask

CONTROL: Final = 30.0
"""Tile cycles of the control program per superstep and copy (assumed); ``Target.superstep_cycles`` also includes the exchange set-up."""

_RESTORED_FIRST: Final = 2
"""Number of times that a training step restores the first boundary."""


def supersteps(layout: Layout) -> tuple[SuperstepDraft, ...]:
    """Return all supersteps of a training step (of a forward pass without training), in order."""
    problem = layout.problem
    runs = problem.schedule.iterations(problem.steps)
    segments = problem.segments
    if problem.fused is None:
        start = _local_copy(layout, "forward: start", runs=1 + (segments.rows > 0))
        forward = (*_initial_states(layout), start, *_relays_and_neurons(layout, "forward", runs, None))
    else:
        forward = _fused_steps(replace(layout, problem=problem.forward))
    if not problem.training:
        return tuple(forward)
    sources = relay_load(layout, "backward")
    add_blocks(layout, sources, "source_gradient", problem.network.layers)
    add_last_sums(layout, sources)
    if problem.further.known:
        sources.add_vertices(ROOT, known(problem.costs), {})
    into_relays = with_clock(layout, deltas_to_sources(layout), sources.tiles)
    deltas_by_rows(layout, into_relays)
    add_sums_to_relays(layout, into_relays)
    steps = (
        *forward,
        *moments_steps(layout),
        *([_boundary_step(layout, "forward: save", segments.number - 1)] if segments.reruns else []),
        *([_row_step(layout, "forward: to streaming memory")] if segments.rows else []),
        *_loss_steps(layout),
        *([_row_step(layout, "backward: from streaming memory")] if segments.rows else []),
        *_recompute_steps(layout),
        _local_copy(layout, "backward: start", runs=segments.number if segments.reruns else 1),
        SuperstepDraft("backward: relays and source gradients", runs, sources, into_relays),
        _backward_neurons(layout, runs),
        *_reduction(layout, runs + _further_windows(problem, runs, backward=True)),
        *_overflow_test(layout, "backward", runs),
        *update_steps(layout),
        *copy_steps(layout),
    )
    return in_passes(problem, steps)


def _backward_neurons(layout: Layout, runs: int) -> SuperstepDraft:
    neurons = clock_load(layout)
    add_blocks(layout, neurons, "backward", layout.problem.network.layers)
    windows = windows_to_blocks(layout, backward=True)
    windows.merge(returned_to_blocks(layout, layout.problem.network.layers))
    return SuperstepDraft("backward: neurons", runs, neurons, with_clock(layout, windows, neurons.tiles))


def _initial_states(layout: Layout) -> tuple[SuperstepDraft, ...]:
    """Return the copy of initial states to the addresses that the first step reads; none with segments, which restore a boundary."""
    problem, moved = layout.problem, np.zeros(layout.problem.target.tiles)
    for layer in problem.network.layers:
        where = layout.ranges[layer.id]
        halves = len(layer.kernel.halves)
        bytes_of_neurons = FLOAT * (len(layer.kernel.states) - halves) * where.tile_neurons
        bytes_of_neurons = bytes_of_neurons + HALF * halves * even_neurons(where.tile_neurons, where.columns)
        np.add.at(moved, where.tiles, bytes_of_neurons * where.tile_samples)
    copied = moved.any() and not problem.segment
    return (_local_copy(layout, "forward: initial states", float(moved.max())),) if copied else ()


def _relays_and_neurons(layout: Layout, part: str, runs: int, iterations: int | None) -> tuple[SuperstepDraft, ...]:
    """Return the supersteps in which relays search for spikes and write windows, and neurons compute.

    They run `runs` times: in the first `iterations` iterations, or in all if it is None.
    """
    relays, neurons = relay_load(layout, "masks", iterations), block_load(layout, iterations)
    windows = relay_load(layout, "windows", runs)
    joined = SuperstepDraft(f"{part}: windows", runs, windows, ExchangeTraffic.none(layout.problem))  # no exchange precedes it
    return (
        SuperstepDraft(f"{part}: relays", runs, relays, with_clock(layout, masks_to_relays(layout), relays.tiles)),
        *((joined,) if windows.vertices else ()),
        *_overflow_test(layout, part, runs),
        SuperstepDraft(f"{part}: neurons", runs, neurons, with_clock(layout, windows_to_blocks(layout), neurons.tiles)),
    )


def _fused_steps(layout: Layout) -> tuple[SuperstepDraft, ...]:
    """Return the supersteps of a forward pass in which relays find the spikes of the previous iteration while neurons compute.

    ``layout.problem`` must have the fused schedule; see :attr:`MappingProblem.forward`.
    """
    problem, nothing = layout.problem, ExchangeTraffic.none(layout.problem)
    runs = problem.schedule.iterations(problem.steps)
    windows, neurons_and_masks = relay_load(layout, "windows"), block_load(layout)
    add_relays(layout, windows, "shown")
    windows.add_vertices(layout.clock_tiles, CLOCK_VERTEX, {})
    _add_mask_copies(layout, windows)
    add_relays(layout, neurons_and_masks, "masks")
    relays = np.array([relay.tile for some in layout.relays.values() for relay in some])
    neurons_and_masks.add_vertices(relays, CLOCK_VERTEX, {})
    moved, counted = with_clock(layout, masks_to_relays(layout), neurons_and_masks.tiles), ExchangeTraffic.none(problem)
    moved.merge(windows_to_blocks(layout))
    homes = layout.clock_tiles
    tiles, number = np.unique(relays[~np.isin(relays, homes)], return_counts=True)
    counted.add(tiles, FLOAT * number, number)
    counted.sent[homes[np.unique(tiles // problem.target.tiles_per_chip)]] += FLOAT
    at_home = int(np.bincount(relays, minlength=problem.target.tiles)[homes].max())
    return (
        *_initial_states(layout),
        _local_copy(layout, "forward: start"),
        SuperstepDraft("forward: counters", 1, Load(problem), counted, local=local_copy_cycles(FLOAT * at_home)),
        SuperstepDraft("forward: windows", runs, windows, nothing),
        SuperstepDraft("forward: neurons", runs, neurons_and_masks, moved),
    )


def _add_mask_copies(layout: Layout, load: Load) -> None:
    problem = layout.problem
    vertex, workers = copy_mask(problem.costs), problem.target.workers
    for source in problem.network.sources:
        if source.external or source.kind != "spikes":
            continue
        where = layout.ranges[source.owner]
        pairs = ceil_div(mask_rows(problem, source, where).row_words * where.tile_samples, 2)
        each, kind = np.unique(ceil_div(pairs, workers), return_inverse=True)
        cycles = problem.target.vertex_start_cycles + vertex.cycles({"pairs": each.astype(np.float64)})
        load.add_kinds(where.tiles, kind.reshape(-1), cycles[:, None], shared=True)


def _recompute_steps(layout: Layout) -> tuple[SuperstepDraft, ...]:
    problem, runs = layout.problem, layout.problem.segments.rerun_iterations
    if not runs:
        return (_boundary_step(layout, "recompute: restore", 1),) if problem.segment else ()
    return (
        *_counter_copies(layout),
        _boundary_step(layout, "recompute: restore", problem.segments.number),
        *(replace(step, repeats=True) for step in _relays_and_neurons(layout, "recompute", runs, runs)),
    )


def _row_step(layout: Layout, name: str) -> SuperstepDraft:
    """Return the superstep that copies the data of a segment (a row) to streaming memory or back, for all segments except the last."""
    problem, local = layout.problem, local_copy_cycles(FLOAT) + CONTROL
    load, nothing = Load(problem).add_vertices(0, CLOCK_VERTEX, {}), ExchangeTraffic.none(problem)
    return SuperstepDraft(name, problem.segments.number - 1, load, nothing, local=local, row=row_copy(layout))


def _counter_copies(layout: Layout) -> tuple[SuperstepDraft, ...]:
    """Return the copies that save the counters of dropped spikes before recomputation and restore them."""
    problem, moved = layout.problem, np.zeros(layout.problem.target.tiles)
    for bus in problem.buses:
        lost = bus.events and bus.capacity < bus.source.width
        for relay in layout.relays[bus.source] if lost else ():
            moved[relay.tile] += FLOAT * problem.target.workers
    return (_local_copy(layout, "recompute: counters", float(moved.max()), 2),) if moved.any() else ()


def _boundary_step(layout: Layout, name: str, runs: int) -> SuperstepDraft:
    """Return the superstep that copies states of blocks, and steps that relays have not sent yet, to or from a boundary."""
    problem, load = layout.problem, Load(layout.problem)
    for layer in problem.network.layers:
        where, cost = layout.ranges[layer.id], problem.costs["boundary"]
        with_support = [source in problem.windowed for source in layer.sent if source.kind == "spikes"]
        halves = len(layer.kernel.halves)
        states = len(layer.kernel.states) - halves
        lists = states + len(layer.sent) - len(with_support)
        if not problem.segments.reruns:
            with_support, lists = [], states
        for shape in layout.shapes(layer):
            words = sum(ceil_div(shape.columns, 32) * mask_unit(shape.columns, support=support) for support in with_support)
            elements = shape.samples * (lists * shape.columns + halves * ceil_div(shape.columns, 2) + words)
            cycles = cost.start + cycles_of(boundary_loops(cost), {"rows": lists + halves + len(with_support), "words": elements})
            load.add(where.tiles, problem.target.vertex_start_cycles + cycles, shape.number)
    # The first boundary, whose relays have no steps to copy, is restored at the beginning and after the last rerun.
    at_first = np.arange(runs) < (_RESTORED_FIRST if name.endswith("restore") else 0)
    for source in problem.sources_at_boundaries:
        relays = layout.relays[source]
        samples, kind = np.unique([relay.samples for relay in relays], return_inverse=True)
        first, later = (boundary_cycles(problem, source, samples, first=at)[:, None] for at in (True, False))
        load.add_kinds(np.array([relay.tile for relay in relays]), kind.reshape(-1), np.where(at_first, first, later))
    if name.endswith("restore"):
        load.add_vertices(layout.clock_tiles, CLOCK_VERTEX, {})
    return SuperstepDraft(name, runs, load, clock_to_boundaries(layout))


def _reduction(layout: Layout, runs: int) -> tuple[SuperstepDraft, ...]:
    if not layout.reductions:
        return ()
    load = Load(layout.problem)
    add_reduction(layout, load)
    return (SuperstepDraft("backward: reduction", runs, load, partials_to_sums(layout)),)


def exchange_cycles(layout: Layout, traffic: ExchangeTraffic) -> Floats:
    """Return the exchange cycles of each tile, for the larger one of its bytes received and sent, and for each fragment received."""
    target = layout.problem.target
    moved = np.maximum(traffic.received, traffic.sent) if traffic.received.any() else traffic.received
    return np.ceil(moved / target.exchange_bytes_per_cycle) + target.fragment_cycles * traffic.fragments


def cycles_by_tile(layout: Layout, steps: tuple[SuperstepDraft, ...]) -> dict[str, tuple[int, ...]]:
    """Return the compute and exchange cycles of each tile in a whole training step."""
    compute = np.sum([step.runs * step.load.cycles for step in steps], axis=0)
    exchange = np.sum([step.runs * exchange_cycles(layout, each) for step in steps for each in (step.traffic, *step.after)], axis=0)
    return {"compute": tuple(compute.astype(np.int64).tolist()), "exchange": tuple(exchange.astype(np.int64).tolist())}


def phase(layout: Layout, step: SuperstepDraft, *, roughly: bool = False) -> Phase:
    """Return the summary of one superstep; with `roughly`, without the busiest tile and its loops."""
    exchanges, target = [step.traffic, *step.after], layout.problem.target
    # All tiles wait for the decision of a loop, and all chips for each copy to or from streaming memory.
    decision = (target.link_sync_cycles if target.chips > 1 else target.sync_cycles) + target.superstep_cycles
    copy = target.link_sync_cycles + target.superstep_cycles
    return Phase(
        name=step.name,
        part=step.part,
        runs=step.runs,
        compute=step.load.busiest + step.local,
        sync=sum(_barrier(layout, traffic) for traffic in exchanges)
        + CONTROL * (step.load.vertices > 0 or not step.decisions)  # a decision alone is neither a compute set nor a copy
        + step.decisions * decision
        + (step.row.copies * copy if step.row else 0.0),
        exchange=sum(_exchange(layout, traffic) for traffic in exchanges) + (step.row.transfer if step.row else 0.0),
        bytes_in=int(max(traffic.received.max() for traffic in exchanges)),
        busiest_tile=0 if roughly else step.load.busiest_tile,
        loops=() if roughly else step.load.slowest_loops(),
    )


def _exchange(layout: Layout, traffic: ExchangeTraffic) -> float:
    over_links = layout.problem.routes.cycles(traffic.flows)
    return max(float(exchange_cycles(layout, traffic).max()), float(np.ceil(over_links)))


def _barrier(layout: Layout, traffic: ExchangeTraffic) -> float:
    target = layout.problem.target
    if not traffic.fragments.any():
        return 0.0
    return (target.link_sync_cycles if traffic.flows.bytes else target.sync_cycles) + target.superstep_cycles - CONTROL


def block_load(layout: Layout, iterations: int | None = None) -> Load:
    """Return the load of the blocks of all populations and of the clocks, in the first `iterations` iterations (None: in all)."""
    load = clock_load(layout, iterations)
    add_blocks(layout, load, "forward", layout.problem.network.layers)
    return load


def _overflow_test(layout: Layout, part: str, runs: int) -> tuple[SuperstepDraft, ...]:
    """Return the supersteps that test for further windows and process them in a loop; none if no bus has limited windows."""
    problem, backward = layout.problem, part == "backward"
    if not problem.limited(backward=backward):
        return ()
    rounds = _further_windows(problem, runs, backward=backward)
    test = tuple(_test_steps(layout, part, runs)) if problem.further.requested_in == ("backward" if backward else "forward") else ()
    decided = SuperstepDraft(f"{part}: decisions", runs + rounds, Load(problem), ExchangeTraffic.none(problem), decisions=1)
    if rounds == 0:
        return (*test, decided)
    read, shown = _further(layout, part)
    return (
        *test,
        decided,
        SuperstepDraft(f"{part}: further windows", rounds, *read),
        SuperstepDraft(f"{part}: next windows", rounds, *shown),
    )


def _further_windows(problem: MappingProblem, runs: int, *, backward: bool) -> int:
    return round(problem.further_windows(backward=backward) * runs / problem.segments.iterations)


def _test_steps(layout: Layout, part: str, runs: int) -> Iterator[SuperstepDraft]:
    """Yield the test for further windows: a tree of tiles computes the maximum of all requests, and its root decides."""
    problem, test = layout.problem, layout.window_test
    assert test is not None
    *levels, root = level_reads(test)
    start, workers, vertex = problem.target.vertex_start_cycles, problem.target.workers, most(problem.costs)
    for number, level in enumerate(levels, 1):
        load = Load(problem).add_vertices(level.tile, vertex, {"numbers": test.words * level.lengths})
        yield SuperstepDraft(f"{part}: test, level {number}", runs, load, requests_exchange(layout, level))
    load = Load(problem)
    load.add_shared(np.array([ROOT]), most_of_workers(problem.costs), {"numbers": test.words * ceil_div(root.lengths[0], workers)})
    decides = answer(problem.costs, looks_back=problem.further.known).cycles({"numbers": test.words * workers})
    local = CONTROL + workers * (start + decides)
    yield SuperstepDraft(f"{part}: test for further windows", runs, load, requests_exchange(layout, root), local=local)


def _further(layout: Layout, part: str) -> tuple[tuple[Load, ExchangeTraffic], tuple[Load, ExchangeTraffic]]:
    """Return loads and exchanges of two supersteps: blocks read a further window, and relays write the next window."""
    read, written = round_load(layout, part), _next_load(layout, part)
    windows = windows_to_blocks(layout, backward=part == "backward", further=True)
    if part == "backward":
        windows.merge(returned_to_blocks(layout, layout.problem.network.layers))
    moved = with_clock(layout, ExchangeTraffic.none(layout.problem), written.tiles)
    if part == "backward":
        add_sums_to_relays(layout, moved, layout.problem.limited(backward=True))
    return (read, with_clock(layout, windows, read.tiles)), (written, moved)


def fragments_without_runs(layout: Layout) -> Floats:
    """Return the fragments of further windows whose expected number is 0; the program contains their exchanges anyway."""
    problem, total = layout.problem, np.zeros(layout.problem.target.tiles)
    for backward in (False, True) if problem.training else (False,):
        if problem.limited(backward=backward) and not round(problem.further_windows(backward=backward)):
            for _, traffic in _further(layout, "backward" if backward else "forward"):
                total += traffic.fragments
    return total


def _next_load(layout: Layout, part: str) -> Load:
    problem, load, backward = layout.problem, Load(layout.problem), part == "backward"
    cost, timeline = problem.costs["next_window"], problem.timeline
    loops = LoopsByPlace(next_window_loops(cost))
    rounds = timeline.further_rounds(backward=backward)
    limited = problem.limited(backward=backward)
    for source in dict.fromkeys(bus.source for bus in limited):
        buses = [bus for bus in limited if bus.source == source]
        relays, samples = layout.relays[source], [(relay.sample, relay.samples) for relay in layout.relays[source]]
        tiles, kinds = np.array([relay.tile for relay in relays]), np.arange(len(relays))
        if source in problem.bits:
            for bus in buses:
                again = partial(bits_cycles, problem, bus, samples, forward=False)
                cycles = problem.memo.get((bus.id, "bits", tuple(samples), False), again)
                load.add_kinds(tiles, kinds, cycles[:, rounds.iteration], shared=True)
            continue
        first, count = np.array(samples, dtype=np.int64).T
        cycles = problem.target.vertex_start_cycles + cost.start + cycles_of(loops[None], {"samples": count})[:, None]
        for bus in buses:
            ids = timeline.in_rounds(bus, rounds, backward=backward, spikes=not backward, later=0 if backward else 1)
            if backward and bus.id in problem.returned:
                before = timeline.in_rounds(bus, rounds, backward=True, spikes=False, later=-1)
                ids = ids + (before if bus.source.width > 1 << 16 else ceil_div(before, 2))
            cycles = cycles + cycles_of(loops["copied"], {"ids": Sums(ids).over(first, count)})
        load.add_kinds(tiles, kinds, cycles)
    if backward:
        add_sums_of_rounds(layout, load, limited, rounds)
    load.add_vertices(ROOT, count_down(problem.costs), {})
    return load


def _loss_steps(layout: Layout) -> Iterator[SuperstepDraft]:
    """Yield the supersteps that compute the loss of each sample, the sum of losses and the learning rate; none for an external loss."""
    if layout.problem.network.external:
        return
    problem, arrive = layout.problem, records_or_adjoints(layout, to_loss=True)
    tiles, workers = np.array(layout.loss_tiles), problem.target.workers
    steps, costs, loss = problem.steps, problem.costs, problem.network.loss
    scores, adjoints = Load(problem), Load(problem)
    scores_per_worker, steps_per_worker = ceil_div(loss.scores, workers), ceil_div(steps, workers)
    scores.add_shared(tiles, loss_scores(costs, loss), {"classes": scores_per_worker, "steps": steps})
    amounts = {"classes": loss.width, "steps": steps_per_worker, "targets": loss.targets_per_worker(steps)}
    adjoints.add_shared(tiles, sample_loss(costs, loss), amounts)
    back, factor = (records_or_adjoints(layout, to_loss=False),), factor_to_losses(layout)
    if loss.scores:
        yield SuperstepDraft("loss: scores", 1, scores, arrive)
    if not loss.scores or loss.reads_steps:
        factor.merge(arrive)
    yield SuperstepDraft("loss: adjoints", 1, adjoints, factor, back)
    total = Load(problem)
    total.add_vertices(0, loss_sum(costs), {"count": problem.batch * problem.loss_parts})
    if not problem.network.extra_passes:
        total.add_vertices(0, schedule(costs), {})
    yield SuperstepDraft("loss: sum", 1, total, losses_to_one_tile(layout))


def _local_copy(layout: Layout, name: str, size: float = FLOAT, runs: int = 1) -> SuperstepDraft:
    """Return a copy of up to `size` bytes inside each tile, by default of an iteration counter."""
    nothing = ExchangeTraffic.none(layout.problem)
    return SuperstepDraft(name, runs, Load(layout.problem), nothing, local=local_copy_cycles(size))
