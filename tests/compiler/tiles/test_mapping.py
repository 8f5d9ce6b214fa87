from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import fields
from functools import cache
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping_nets import Wire, chain, program, small, w1
from wide import examples, sampled

from snnc.compiler.errors import PlanFileError
from snnc.compiler.ir.plan import Block, Plan, PopulationPlan
from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import CodeletCost, codelet_costs, make_plan
from snnc.compiler.tiles.blocks.grouping import largest_share, split_samples
from snnc.compiler.tiles.errors import CapacityError, MappingOptionError
from snnc.compiler.tiles.search.search import EFFORT

ACTIVITY = {"x0": 0.05, "p0_o0": 0.05}
LOCAL_SEARCH = examples(1, EFFORT)
"""Improve plans by six changes, or as for users."""


def w1_plan(name: str = "gc200", *, measured: bool = False) -> Plan:
    """After a local search."""
    return _w1_plan(name, measured)


@cache
def _w1_plan(name: str, measured: bool) -> Plan:
    return make_plan(w1(), load_target(name), steps=100, batch=64, activity=ACTIVITY if measured else None, effort=LOCAL_SEARCH)


def replicas_by_tile(population: PopulationPlan) -> dict[int, int]:
    return {tile: r for r in reversed(range(population.replicas)) for tile in population.replica_tiles(r)}


def check(plan: Plan) -> None:
    """What every plan promises."""
    owners: dict[int, set[str]] = {}
    for population in plan.populations:
        covered = np.zeros((population.neurons, plan.batch), dtype=int)
        per_tile: dict[int, int] = {}
        for block in population.blocks:
            covered[block.first : block.first + block.count, block.sample : block.sample + block.samples] += 1
            per_tile[block.tile] = per_tile.get(block.tile, 0) + 1
            owners.setdefault(block.tile, set()).add(population.id)
        assert (covered == 1).all()
        assert max(per_tile.values()) <= plan.target.workers
        assert set(per_tile) == {tile for r in range(population.replicas) for tile in population.replica_tiles(r)}
        replica = replicas_by_tile(population)
        order = [(replica[b.tile], b.tile, b.first, b.sample) for b in population.blocks]
        assert order == sorted(order)
        cuts: dict[int, set[tuple[int, int]]] = {r: set() for r in range(population.replicas)}
        for block in population.blocks:
            cuts[replica[block.tile]].add((block.first, block.count))
        assert all(cut == cuts[0] for cut in cuts.values())
    if plan.target.tiles >= len(plan.populations):
        assert all(len(names) == 1 for names in owners.values())
    by_source: dict[str, set[object]] = {}
    for bus in plan.buses:
        samples = np.zeros(plan.batch, dtype=int)
        for relay in bus.relays:
            samples[relay.sample : relay.sample + relay.samples] += 1
        assert (samples == 1).all()
        assert len({r.tile for r in bus.relays}) == len(bus.relays)
        by_source.setdefault(bus.buffer, set()).add(bus.relays)
    assert all(len(relays) == 1 for relays in by_source.values())
    assert len(plan.tile_memory) == plan.target.tiles
    assert max(plan.tile_memory) <= plan.target.tile_bytes
    assert all(p.compute >= 0 and p.exchange >= 0 and p.sync > 0 and p.runs >= 1 for p in plan.phases)


@pytest.mark.representative("one tile", "two tiles", "gc200", "four chips")
@pytest.mark.parametrize(
    "target",
    [small(1), small(2), small(4), load_target("gc200"), load_target("m2000"), small(3, chips=4)],
    ids=["one tile", "two tiles", "four tiles", "gc200", "m2000", "four chips"],
)
def test_every_neuron_and_sample_has_one_block_on_machines_of_any_size(target: Target) -> None:
    check(make_plan(chain(40, 30, 25, 7), target, steps=5, batch=7))


@pytest.mark.representative("gc200")
@pytest.mark.parametrize("name", sampled(["gc200", "bow", "m2000", "pod16"], 2))
def test_w1_is_mapped_within_memory(name: str) -> None:
    check(w1_plan(name))


def test_inference_places_no_gradients() -> None:
    plan = make_plan(w1(), load_target("gc200"), steps=100, batch=64, training=False)
    check(plan)
    assert {p.part for p in plan.phases} == {"forward"}
    assert not any(plan.memory["gradients"])
    assert not any(plan.memory["optimiser"])
    assert plan.cycles < w1_plan().cycles


def test_all_on_one_tile_moves_nothing() -> None:
    plan = make_plan(chain(10, 8, 4), small(1), steps=4, batch=3)
    check(plan)
    assert all(p.exchange == 0 for p in plan.phases if p.part in ("forward", "backward"))


def test_populations_stay_on_one_chip_when_they_fit() -> None:
    plan = make_plan(chain(32, 80, 80, 10), small(50, chips=4), steps=10, batch=8)
    for population in plan.populations:
        for tiles in map(population.replica_tiles, range(population.replicas)):
            assert tiles[0] // 50 == tiles[-1] // 50


def test_a_population_that_needs_several_chips_spans_them() -> None:
    target = small(40, chips=8, tile_bytes=200_000)
    plan = make_plan(chain(2000, 900, 10), target, steps=20, batch=8)
    check(plan)
    assert plan.populations[0].tiles > 40
    assert plan.chips_used > 1


@pytest.mark.wide
def test_the_number_of_chips_can_be_given() -> None:
    plan = make_plan(chain(64, 300, 300, 10), small(200, chips=4), steps=20, batch=8, chips=2, effort=EFFORT)
    check(plan)
    assert plan.chips_used == 2
    sync = {p.name: p.sync for p in plan.phases}
    assert sync["forward: neurons"] == 126 + 130  # replicas on several chips wait for each other only at the update
    assert sync["update: optimiser"] == 600 + 130


def test_the_same_call_gives_the_same_plan() -> None:
    assert w1_plan() == make_plan(w1(), load_target("gc200"), steps=100, batch=64, effort=LOCAL_SEARCH)


@pytest.mark.representative("of0")
@pytest.mark.parametrize("of", [{}, {"measured": True}, {"name": "m2000"}])
def test_json_round_trip_is_exact(of: dict) -> None:
    plan = w1_plan(**of)
    text = plan_to_json(plan)
    assert plan_from_json(text) == plan
    assert len(text) < 57_000  # of which traffic and loops take 5,000


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":"snnc plan 3"}', '{"format":"snnc plan 1","target":3}', "null"])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(PlanFileError, match="SNNC-E314"):
        plan_from_json(text)


# ---- independent computations by hand ----------------------------------------------------------------------------------


def test_memory_of_a_hidden_tile_of_w1_is_what_a_hand_computation_gives() -> None:
    plan = w1_plan()
    hidden = plan.populations[0]
    tile = hidden.starts[0]
    blocks = [b for b in hidden.blocks if b.tile == tile]
    groups, samples = {b.first: b.count for b in blocks}, sum(b.samples for b in blocks if b.first == blocks[0].first)
    neurons, private = sum(groups.values()), len(blocks) // len(groups)
    held = {name: tiles[tile] for name, tiles in plan.memory.items()}
    inputs = 700 + 256
    assert samples == 64 // hidden.replicas
    # The optimiser's superstep holds most: neither source-side copies nor histories are live, but gradients of all replicas arrive.
    own = neurons * inputs + 1  # rows in, beta
    assert held["weights"] == 4 * own
    assert held["optimiser"] == 4 * 2 * -(-neurons * inputs // hidden.replicas)  # two moments of a replica's share
    # Private gradients are summed; the deltas of the step before wait for a first iteration that reads them, and so do masks.
    assert held["gradients"] == 4 * neurons * inputs + 4 * samples * neurons
    assert held["history"] == 4 * samples * neurons + 4 * samples * len(groups)  # initial values of v; a word of bits a group
    assert held["records"] == 0
    share = sum(2 * (inputs * columns // 2 // hidden.replicas) for columns in groups.values())  # whole pairs, of the first replica
    assert held["exchange"] == 4 * share * (hidden.replicas - 1)
    copies = neurons * (256 + 20)  # of recurrent and readout rows
    states = samples * neurons * (1 + 101 + 1)  # initial and all v, the current
    adjoints = samples * neurons * (1 + 1 + 1)  # d_v, delta, a waiting output gradient
    windows = samples * (2 * 700 + 4 + 2 * 256 + 4)  # both, ids and counts
    passes = 4 * (own + copies + states + adjoints + neurons * private * inputs) + windows
    assert passes < 4 * own + held["gradients"] + held["history"] + held["exchange"]


def blocks_by_tile(plan: Plan) -> dict[int, list[tuple[str, Block]]]:
    """Population and block of each block of a tile."""
    found: dict[int, list[tuple[str, Block]]] = defaultdict(list)
    for population in plan.populations:
        for block in population.blocks:
            found[block.tile].append((population.id, block))
    return found


def window_exchange(plan: Plan, tile: int, on_tile: list[tuple[str, Block]]) -> float:
    """Cycles of a tile that receives or sends windows (ids, counts) and the iteration: its bytes, and 9 for each piece received."""
    received, sent, fragments = (0, 4, 0) if tile == 0 else (4, 0, 1)
    for bus in plan.buses:
        targets = {c.target for c in plan.connections if c.bus == bus.id}
        blocks = [block for population, block in on_tile if population in targets]
        mine = {sample for b in blocks for sample in range(b.sample, b.sample + b.samples)}
        for relay in bus.relays:
            read = mine & set(range(relay.sample, relay.sample + relay.samples))
            if relay.tile == tile:
                sent += relay.samples * (2 * bus.width + 4)
            elif read:
                received += len(read) * (2 * bus.width + 4)
                fragments += 2
    return math.ceil(max(received, sent) / 4) + 9 * fragments


def test_cycles_of_the_forward_neurons_of_w1_are_what_a_hand_computation_gives() -> None:
    plan = w1_plan()
    phase = next(p for p in plan.phases if p.name == "forward: neurons")
    worker = 0.0
    for population, inputs in zip(plan.populations, (700 + 256, 256), strict=True):
        cost = codelet_costs(w1())[f"forward.{population.id}"]
        tile = population.starts[0]
        largest = max((b.count, b.samples) for b in population.blocks if b.tile == tile)
        events = largest[1] * 0.05 * inputs
        neuron = largest[1] * (largest[0] // 2 * cost.pair + largest[0] % 2 * cost.neuron + cost.sample)
        lists = sum(c.target == population.id for c in plan.connections) * largest[1] * (cost.sweep + cost.swept_column * largest[0])
        event = event_by_walking_its_columns(largest[0], cost.event, cost.event_vector, cost.event_joined)
        draws = len({(b.sample, b.samples) for b in population.blocks})
        spread = event * (largest[1] * inputs * 0.05 * 0.95) ** 0.5
        each = 10 + cost.start + neuron + lists + events * event + spread * NormalDist().inv_cdf((draws - 0.375) / (draws + 0.25))
        worker = max(worker, each)
    assert phase.compute == pytest.approx(6 * worker, rel=0.005)  # the draws of 100 steps against their expected largest
    blocks = blocks_by_tile(plan)
    assert phase.exchange == max(window_exchange(plan, tile, blocks[tile]) for tile in range(plan.target.tiles))
    assert phase.sync == 126 + 130
    assert phase.runs == plan.iterations == 101


def event_by_walking_its_columns(columns: int, event: int, pair: int, joined: int) -> int:
    """Sweeps of at most 6 pairs, a last single column instead of a pair; each sweep reads the id again."""
    cycles, left = 0, columns
    while left:
        taken = min(left, 12)
        cycles += event + pair * (taken // 2 + taken % 2) + (joined if taken % 2 and taken > 1 else 0)
        left -= taken
    return cycles


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("parts", range(1, 7))
def test_samples_are_cut_in_twos_where_their_number_is_even_or_where_that_makes_no_part_larger(parts: int, paired: bool) -> None:
    for total in range(6, 30):
        cut = list(split_samples(total, parts, paired=paired))
        assert [first for first, _ in cut] == [sum(count for _, count in cut[:n]) for n in range(parts)]
        assert sum(count for _, count in cut) == total
        counts = [count for _, count in cut]
        assert max(counts) == largest_share(total, parts, paired=paired)
        assert min(counts) > 0
        assert paired or max(counts) == -(-total // parts)
        if total % 2 == 0 and total >= 2 * parts and (paired or -(-total // parts) % 2 == 0):
            assert all(first % 2 == 0 for first, _ in cut)
            assert max(counts) - min(counts) in (0, 2)
        else:
            assert max(counts) - min(counts) <= 1


def test_layers_of_one_structure_have_equal_coefficients() -> None:
    costs = codelet_costs(chain(40, 30, 25, 20, 7))
    assert costs["forward.p1"] == costs["forward.p0"]
    assert costs["backward.p1"] == costs["backward.p0"]
    assert costs["forward.p3"] != costs["forward.p0"]
    coefficients = [field.name for field in fields(CodeletCost) if field.name != "loops"]
    assert all(isinstance(getattr(cost, name), int) for cost in costs.values() for name in coefficients)


# ---- capacity ----------------------------------------------------------------------------------------------------------


def test_without_measurements_windows_hold_everything() -> None:
    assert [b.capacity for b in w1_plan().buses] == [700, 256]
    assert not any("further" in p.name for p in w1_plan().phases)


def test_measured_activity_gives_a_capacity_above_the_mean() -> None:
    target = small(200, exchange_bytes_per_cycle=0.25)
    plan = make_plan(w1(), target, steps=20, batch=64, activity=ACTIVITY)
    assert [b.capacity for b in plan.buses] == [60, 28]  # 35 + 4 * sqrt(33.25) + 1 and 12.8 + 4 * sqrt(12.16) + 1, to multiples of 4
    assert any("further" in p.name for p in plan.phases)
    assert plan.cycles < make_plan(w1(), target, steps=20, batch=64).cycles


def test_windows_hold_everything_where_that_is_faster_than_asking_for_further_ones() -> None:
    plan = w1_plan(measured=True)
    assert [b.capacity for b in plan.buses] == [700, 256]
    assert not any("further" in p.name for p in plan.phases)
    assert plan.cycles == w1_plan().cycles


def test_capacities_are_taken_as_given() -> None:
    plan = make_plan(w1(), load_target("gc200"), steps=10, batch=8, capacity={"x0": 50}, mode="drop")
    assert [b.capacity for b in plan.buses] == [50, 256]
    assert not any("further" in p.name for p in plan.phases)
    assert [b.capacity for b in make_plan(w1(), load_target("gc200"), steps=10, batch=8, capacity=300).buses] == [300, 256]


@pytest.mark.parametrize("options", [{"capacity": 0}, {"capacity": {"y": 3}}, {"activity": {"x0": 1.5}}, {"activity": {"y": 0.5}}])
def test_capacities_and_activities_outside_their_range(options: dict) -> None:
    with pytest.raises(CapacityError, match="SNNC-E311"):
        make_plan(w1(), load_target("gc200"), steps=10, batch=8, **options)


@pytest.mark.parametrize("options", [{"steps": 0}, {"batch": 0}, {"chips": 2}, {"chips": 0}, {"mode": "maybe"}])
def test_options_outside_their_range(options: dict) -> None:
    with pytest.raises(MappingOptionError, match="SNNC-E310"):
        make_plan(w1(), load_target("gc200"), **{"steps": 10, "batch": 8, **options})


def test_inputs_of_values_move_all_values() -> None:
    plan = make_plan(chain(40, 30, 7, input_kind="values"), load_target("gc200"), steps=5, batch=7)
    check(plan)
    assert [(b.kind, b.capacity) for b in plan.buses] == [("values", 40), ("events", 30)]


def test_two_connections_with_one_lag_share_a_bus() -> None:
    made = program({"x0": 9, "p0": 8, "p1": 7, "p2": 3}, [Wire("x0", "p0"), Wire("x0", "p1"), Wire("p0", "p2"), Wire("p1", "p2")])
    plan = make_plan(made, load_target("gc200"), steps=5, batch=4)
    assert [c.bus for c in plan.connections] == ["b0", "b0", "b1", "b2"]


# ---- any network on any machine ----------------------------------------------------------------------------------------


@given(
    widths=st.lists(st.integers(1, 60), min_size=2, max_size=7),
    tiles=st.integers(1, 40),
    chips=st.integers(1, 4),
    batch=st.integers(1, 20),
    loops=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 3)), max_size=4),
    measured=st.booleans(),
    mode=st.sampled_from(["exact", "drop"]),
)
@settings(max_examples=examples(3, 12), deadline=None)
def test_plans_of_random_networks_keep_their_promises(
    widths: list[int], tiles: int, chips: int, batch: int, loops: list[tuple[int, int, int]], measured: bool, mode: str
) -> None:
    names = ["x0", *(f"p{n}" for n in range(len(widths) - 1))]
    last = len(widths) - 2
    wires = [Wire(a, b) for a, b in itertools.pairwise(names)]
    wires += [Wire(f"p{a}", f"p{b}", d) for a, b, d in loops if a < last and b < last]
    made = program(dict(zip(names, widths, strict=True)), wires)
    known = {"x0": 0.1} if measured else None
    plan = make_plan(made, small(tiles, chips=chips), steps=6, batch=batch, activity=known, mode=mode)
    check(plan)
    assert plan_from_json(plan_to_json(plan)) == plan


@pytest.mark.wide
def test_a_deep_net_uses_the_chips_of_a_pod() -> None:
    made = program({"x0": 700, **{f"p{n}": 1400 for n in range(4)}}, [Wire("x0", "p0"), *(Wire(f"p{n}", f"p{n + 1}") for n in range(3))])
    plan = make_plan(made, load_target("pod4"), steps=50, batch=16, activity={"x0": 0.02})
    check(plan)
    assert plan.chips_used > 2
