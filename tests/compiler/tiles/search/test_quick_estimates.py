"""Fast planning does not change plans: estimates that full plans continue from, shared tables, bounds, equal layouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import snnc
from snnc.compiler.ir.plan_json import plan_to_json
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.blocks.blocks import different_rows
from snnc.compiler.tiles.blocks.grouping import Cuts
from snnc.compiler.tiles.cycles.block_cycles import step_cycles
from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.mapped.network import describe
from snnc.compiler.tiles.memory.block_memory import block_bytes
from snnc.compiler.tiles.placement.choices import cuts
from snnc.compiler.tiles.request import MappingRequest
from snnc.compiler.tiles.request_search import _searches
from snnc.compiler.tiles.schedule.schedule import make_schedule
from snnc.compiler.tiles.search.quick_estimates import Clocks, QuickEstimates
from snnc.compiler.tiles.search.search import Search

STEPS, BATCH = 6, 4
TARGET = replace(load_target("gc200"), name="gc200-24", tiles_per_chip=24)


def planned(program, target, estimates=None, **options):
    return make_plan(program, target, steps=STEPS, batch=BATCH, estimates=estimates, **options)


@pytest.fixture(scope="module")
def program():
    net = snnc.Network("small", seed=0)
    source = net.input((1, 8, 8), kind="spikes")
    maps = net.population((3, 4, 4), snnc.LIF(beta=0.9), name="maps")
    readout = net.population(5, snnc.LI(beta=0.9), name="readout")
    net.connect(source, maps, [snnc.Conv(3, 3, stride=2, padding=1)])
    net.connect(maps, readout, snnc.Dense())
    return lower(net.graph(), loss=parse_loss("ce_count"), optimizer=Adam(1e-3), steps=STEPS)


@pytest.fixture(scope="module")
def request_of(program):
    network = describe(program)
    return MappingRequest(network, make_schedule(network), TARGET, STEPS, BATCH, "exact", Activity(), None, None)


@pytest.fixture(scope="module")
def search(request_of) -> Search:
    return _searches(request_of, "snnc", None)[0]


@pytest.mark.usefixtures("short_local_search")
def test_a_full_plan_after_a_quick_look_is_the_plan_without_one(program):
    estimates = QuickEstimates()
    quick = make_plan(program, TARGET, steps=STEPS, batch=BATCH, quick=True, estimates=estimates)
    alone = make_plan(program, TARGET, steps=STEPS, batch=BATCH)
    after = make_plan(program, TARGET, steps=STEPS, batch=BATCH, estimates=estimates)
    assert plan_to_json(after) == plan_to_json(alone)
    assert alone.cycles <= quick.cycles


def test_a_look_at_another_batch_is_not_gone_on_from(program):
    estimates = QuickEstimates()
    make_plan(program, TARGET, steps=STEPS, batch=2 * BATCH, quick=True, estimates=estimates)
    after = make_plan(program, TARGET, steps=STEPS, batch=BATCH, estimates=estimates)
    assert plan_to_json(after) == plan_to_json(make_plan(program, TARGET, steps=STEPS, batch=BATCH))


def test_tables_of_several_cuts_are_those_of_each(request_of):
    problem = next(request_of.problems())
    neurons = np.array([1, 2, 3, 5, 12])
    for layer in problem.network.layers:
        for some in ([cut for cut in cuts(problem, layer) if cut.replicas == 1], [c for c in cuts(problem, layer) if c.replicas > 1]):
            several = Cuts.of(some)
            cycles = step_cycles(problem, layer, several, neurons)
            held = block_bytes(problem, layer, several, neurons, several.samples(BATCH))
            for row, cut in enumerate(some):
                np.testing.assert_allclose(cycles[:, row], step_cycles(problem, layer, cut, neurons))
                for kept, size in block_bytes(problem, layer, cut, neurons, cut.samples(BATCH)).items():
                    np.testing.assert_array_equal(np.broadcast_to(held[kept], (len(some), len(neurons)))[row], size)


def test_bounds_do_not_pass_the_price(search):
    part, options = search.problem, search._options(search.problem)
    assert search._estimates
    for some in search._estimates:
        assert search._least_cycles(part, options, some.layout.placement) <= some.cycles


def test_equal_layouts_are_priced_once(search):
    placement, before = search._estimates[0].layout.placement, len(search._estimates)
    more = tuple(replace(where, columns=where.columns + 7 * bool(where.columns >= where.neurons.max())) for where in placement.ranges)
    assert search.price(replace(placement, ranges=more), local_relays=True) is search.price(placement, local_relays=True)
    assert len(search._estimates) == before


@pytest.mark.parametrize("seed", range(8))
def test_the_busiest_tile_is_the_same_whether_all_tiles_are_told_apart_or_not(request_of, seed):
    random, problem = np.random.default_rng(seed), next(request_of.problems())
    loads = [Load(problem), Load(problem)]
    for shared in random.random(4) < 0.3:
        tiles, kind = random.integers(0, 24, 40), random.integers(0, 5, 40)
        cycles = random.integers(1, 50, (5, len(problem.timeline.chosen))).astype(float)
        for load in loads:
            load.add_kinds(tiles, kind, cycles, shared=bool(shared))
    one, other = loads
    assert other.cycles.max() > 0  # tells all tiles apart
    assert one.busiest == pytest.approx(other.busiest)


@pytest.mark.parametrize("most", [5, 1 << 20, 1 << 30])
def test_rows_that_differ_are_those_of_numpy(most):
    numbers = np.random.default_rng(0).integers(0, most, (50, 6))
    numbers = np.concatenate([numbers, numbers[::2]])
    one, kind = different_rows(numbers)
    found, inverse = np.unique(numbers, axis=0, return_inverse=True)
    np.testing.assert_array_equal(numbers[one], found)
    np.testing.assert_array_equal(kind, inverse.reshape(-1))


def test_a_plan_at_another_clock_is_the_plan_made_for_it(program):
    clocks, fast = Clocks(), replace(TARGET, name="fast", clock_hz=3 * TARGET.clock_hz)
    first = planned(program, TARGET, QuickEstimates(clocks))
    found = planned(program, fast, QuickEstimates(clocks))
    assert found.phases is first.phases
    assert plan_to_json(found) == plan_to_json(planned(program, fast))


@pytest.mark.representative("change0")
@pytest.mark.parametrize("change", [{"tiles_per_chip": 23}, {"exchange_bytes_per_cycle": 8.0}, {"chips": 2}])
def test_a_plan_of_another_machine_is_not_taken(program, change):
    clocks, other = Clocks(), replace(TARGET, name="other", **change)
    planned(program, TARGET, QuickEstimates(clocks))
    assert plan_to_json(planned(program, other, QuickEstimates(clocks))) == plan_to_json(planned(program, other))


def test_a_plan_with_segments_is_made_for_every_clock(program):
    clocks = Clocks()
    plan = replace(planned(program, TARGET), segment=2)
    clocks.add({"request": {"target": TARGET}}, plan)
    assert clocks.plan({"request": {"target": TARGET}}, TARGET) is None
