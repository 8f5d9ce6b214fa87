"""Supersteps priced by the events of every sample and step, compared with simple loops over a plan's blocks and iterations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from mapping_nets import Wire, program, w1

from snnc.compiler.ir.plan import Block, Phase, Plan
from snnc.compiler.ir.plan_json import plan_to_json
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import codelet_costs, make_plan
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.cycles.load import makespans
from snnc.compiler.tiles.mapped.network import describe
from snnc.compiler.tiles.replan import as_planned
from snnc.compiler.tiles.request import MappingRequest
from snnc.compiler.tiles.schedule.schedule import make_schedule
from snnc.compiler.tiles.vertices.cost import CodeletCost

Counts = dict[str, npt.NDArray[np.int64]]


def machine(tiles: int, chips: int = 1) -> Target:
    return replace(load_target("gc200"), name="small", tiles_per_chip=tiles, chips=chips)


def bursts(width: int, steps: int, samples: int, seed: int) -> npt.NDArray[np.int64]:
    """Counts with busy steps and lively samples."""
    random = np.random.default_rng(seed)
    rate = random.beta(0.4, 4.0, size=(steps, 1)) * random.uniform(0.3, 1.0, size=(1, samples))
    return random.binomial(width, rate)


def deep() -> StepProgram:
    return program({"x0": 60, "p0": 40, "p1": 30, "p2": 7}, [Wire("x0", "p0"), Wire("p0", "p1"), Wire("p1", "p2"), Wire("x0", "p2")])


def counts_of(made: StepProgram, steps: int, samples: int) -> Counts:
    sent = sorted({c.source_buffer for c in made.connections})
    return {name: bursts(math.prod(made.buffers[name].shape), steps, samples, seed) for seed, name in enumerate(sent)}


def shown(plan: Plan, bus_id: str, counts: Counts, k: int, sample: int, batch: int = 0) -> int:
    """Events of a sample in the window of a bus in iteration k."""
    bus = next(b for b in plan.buses if b.id == bus_id)
    stage = next((p.stage for p in plan.populations if p.id == bus.source), -1)
    t, rest = divmod(k - stage - bus.lag, plan.interval)
    return int(counts[bus.buffer][t, batch * plan.batch + sample]) if rest == 0 and 0 <= t < plan.steps else 0


def forward_cycles(plan: Plan, cost: CodeletCost, stage: int, block: Block, k: int, events: list[int]) -> float:
    """Cycles of a block in an iteration with so many events on each of its connections."""
    t, rest = divmod(k - stage, plan.interval)
    if rest or not 0 <= t < plan.steps:
        return plan.target.vertex_start_cycles + cost.idle
    links = len(events) * block.samples
    sweeps = links * -(-((block.count + 1) // 2) // 6)
    pairs, last = block.samples * (block.count // 2), block.samples * (block.count % 2)
    cycles = cost.start + cost.sample * block.samples + cost.pair * pairs + cost.neuron * last
    cycles += cost.sweep * sweeps + cost.swept_column * links * block.count
    return plan.target.vertex_start_cycles + cycles + sum(events) * cycles_of_an_event(cost, block.count)


def cycles_of_an_event(cost: CodeletCost, columns: int) -> int:
    """Sweeps of at most 6 pairs, each of which reads the id again; a single column instead of a pair is the last."""
    cycles, left = 0, columns
    while left:
        taken = min(left, 12)
        cycles += cost.event + cost.event_vector * (taken // 2 + taken % 2) + (cost.event_joined if taken % 2 and taken > 1 else 0)
        left -= taken
    return cycles


def dealt(cycles: list[float], workers: int) -> float:
    busy = [0.0] * workers
    for one in sorted(cycles, reverse=True):
        busy[busy.index(min(busy))] += one
    return max(busy)


def forward_neurons(plan: Plan, made: StepProgram, counts: Counts, batch: int = 0) -> float:
    """Tile cycles of the busiest tile, in the mean over all iterations."""
    longest, costs = [], codelet_costs(made)
    for k in range(plan.iterations):
        tiles: dict[int, list[float]] = {0: [plan.target.vertex_start_cycles + 8.0]}  # the clock
        for p in plan.populations:
            buses = [c.bus for c in plan.connections if c.target == p.id]
            for b in p.blocks:
                samples = range(b.sample, b.sample + b.samples)
                events = [sum(shown(plan, bus, counts, k, s, batch) for s in samples) for bus in buses]
                tiles.setdefault(b.tile, []).append(forward_cycles(plan, costs[f"forward.{p.id}"], p.stage, b, k, events))
        longest.append(max(dealt(cycles, plan.target.workers) for cycles in tiles.values()))
    return plan.target.workers * float(np.mean(longest))


def phase_of(plan: Plan, name: str) -> Phase:
    return next(phase for phase in plan.phases if phase.name == name)


@pytest.mark.representative("deep-1-1", "deep-5-1", "deep-12-2", "w1-5-1")
@pytest.mark.parametrize(("tiles", "chips"), [(1, 1), (5, 1), (64, 1), (12, 2)])
@pytest.mark.parametrize("net", [deep, w1])
def test_forward_compute_is_that_of_the_busiest_tile_of_every_iteration(net, tiles: int, chips: int) -> None:
    made, steps, batch = net(), 9, 6
    counts = counts_of(made, steps, batch)
    mean = {name: float(some.mean()) / math.prod(made.buffers[name].shape) for name, some in counts.items()}
    target = replace(machine(tiles, chips), tile_bytes=1 << 26)
    plan = make_plan(made, target, steps=steps, batch=batch, activity=mean, counts=counts, capacity=10_000, effort=0, fused=False)
    assert phase_of(plan, "forward: neurons").compute == pytest.approx(forward_neurons(plan, made, counts))


def test_several_measured_batches_are_averaged() -> None:
    made, steps, batch = deep(), 9, 4
    counts = counts_of(made, steps, 3 * batch)
    plan = make_plan(made, machine(6), steps=steps, batch=batch, counts=counts, capacity=10_000, effort=0, fused=False)
    wanted = np.mean([forward_neurons(plan, made, counts, number) for number in range(3)])
    assert phase_of(plan, "forward: neurons").compute == pytest.approx(float(wanted))


def test_bursts_cost_more_than_the_same_events_spread_evenly() -> None:
    made, steps, batch = deep(), 12, 6
    counts = counts_of(made, steps, batch)
    even = {name: np.full_like(some, round(float(some.mean()))) for name, some in counts.items()}
    burst, calm = (
        make_plan(made, machine(6), steps=steps, batch=batch, counts=c, capacity=10_000, effort=0).cycles for c in (counts, even)
    )
    assert burst > calm


def test_further_windows_are_those_of_the_busiest_sample_of_each_iteration() -> None:
    made, steps, batch, capacity = deep(), 9, 6, 4
    counts = counts_of(made, steps, batch)
    plan = make_plan(made, machine(6), steps=steps, batch=batch, counts=counts, capacity=capacity, effort=0)
    assert {bus.capacity for bus in plan.buses} == {capacity}
    most = [max(shown(plan, bus.id, counts, k, s) for bus in plan.buses for s in range(batch)) for k in range(plan.iterations)]
    rounds = [-(-events // capacity) - 1 for events in most]
    assert phase_of(plan, "forward: further windows").runs == sum(max(r, 0) for r in rounds)
    assert phase_of(plan, "forward: test for further windows").runs == plan.iterations
    assert phase_of(plan, "forward: decisions").runs == plan.iterations + sum(max(r, 0) for r in rounds)


def test_drop_mode_prices_no_more_events_than_a_window_holds() -> None:
    made, steps, batch = deep(), 9, 6
    counts = counts_of(made, steps, batch)
    clipped = {name: np.minimum(some, 5) for name, some in counts.items()}
    options = {"steps": steps, "batch": batch, "capacity": 5, "mode": "drop", "effort": 0, "fused": False}
    one = make_plan(made, machine(6), counts=counts, **options)
    other = make_plan(made, machine(6), counts=clipped, placer=as_planned(one), **options)
    assert phase_of(one, "forward: neurons").compute == pytest.approx(phase_of(other, "forward: neurons").compute)
    assert phase_of(one, "backward: neurons").compute == pytest.approx(phase_of(other, "backward: neurons").compute)


def test_what_is_drawn_is_the_same_every_time() -> None:
    plans = [make_plan(deep(), machine(6), steps=20, batch=6, activity={"x0": 0.1, "p0_o0": 0.1, "p1_o0": 0.1}) for _ in range(2)]
    assert plan_to_json(plans[0]) == plan_to_json(plans[1])


def test_every_tile_is_done_when_its_own_vertices_are_whatever_others_have() -> None:
    random = np.random.default_rng(0)
    counts = random.choice([0, 1, 5, 6, 7, 13], size=40)
    where = np.repeat(np.arange(40), counts)
    cycles = random.integers(20, 400, size=(len(where), 3)).astype(float)
    wanted = [[dealt(cycles[where == tile, i].tolist(), 6) for i in range(3)] for tile in range(40)]
    np.testing.assert_array_equal(makespans(where, np.arange(len(where)), cycles, 40, 6), wanted)


def test_many_vertices_are_dealt_as_well_as_some_of_them_are() -> None:
    random = np.random.default_rng(0)
    cycles = random.integers(20, 60, size=(40, 20_000)).astype(float)
    found = makespans(np.zeros(40, dtype=np.int64), np.arange(40), cycles, 1, 6)[0]
    some = range(0, 20_000, 500)
    assert np.mean(found[::500]) == pytest.approx(np.mean([dealt(cycles[:, i].tolist(), 6) for i in some]), rel=0.02)


def test_tables_of_choices_count_the_block_with_the_busiest_samples():
    made = deep()
    counts = counts_of(made, steps=12, samples=6)
    network = describe(made)
    asked = MappingRequest(network, make_schedule(network), machine(64), 12, 6, "exact", Activity(counts=counts), None, None)
    problem = next(iter(asked.problems()))
    for bus in problem.buses:
        for samples in (1, 2, 3, 6):
            shown = np.minimum(counts[bus.source.buffer], bus.capacity)
            of_blocks = shown.reshape(12, 6 // samples, samples).sum(axis=2)
            wanted = of_blocks.max(axis=1).mean() / samples
            assert problem.timeline.busiest(bus, "backward", np.array([samples]))[0] == pytest.approx(wanted)
