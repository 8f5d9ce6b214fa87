"""Placement baselines: every neuron has one tile, work is even if a baseline balances it, seeds determine the result."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping_nets import Wire, program, w1

from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.baselines import Assignment, check_strategy, partition
from snnc.compiler.tiles.baselines.partition import NeuronFlow, at_random, each_layer, one_after_the_other, runs_at_random
from snnc.compiler.tiles.errors import BaselineTooBigError, NoPartitionerError, StrategyError
from snnc.compiler.tiles.exchange.traffic import deltas_to_sources, windows_to_blocks
from snnc.compiler.tiles.prediction.training_step import supersteps
from snnc.compiler.tiles.search import search

SIZES = st.lists(st.integers(1, 50), min_size=1, max_size=5).map(tuple)
TILES = st.integers(1, 70)


def chain(sizes: tuple[int, ...]) -> tuple[NeuronFlow, ...]:
    return tuple(NeuronFlow(n, n + 1, 0.1) for n in range(len(sizes) - 1))


def load(assignment: Assignment, tiles: int) -> np.ndarray:
    """Neurons on each tile, all layers."""
    found = np.zeros(tiles, dtype=int)
    for share in assignment:
        found[share.tiles] += share.neurons
    return found


def check(assignment: Assignment, sizes: tuple[int, ...], tiles: int) -> None:
    assert [int(share.neurons.sum()) for share in assignment] == list(sizes)
    for share in assignment:
        assert len(share.tiles) == len(share.neurons)
        assert (share.neurons >= 1).all()
        assert (np.diff(share.tiles) >= 1).all()
        assert share.tiles[0] >= 0
        assert share.tiles[-1] < tiles


@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, tiles=TILES, seed=st.integers(0, 99))
def test_every_neuron_is_dealt_once(sizes: tuple[int, ...], tiles: int, seed: int) -> None:
    runs = partition.make_runs(sizes, (1.0,) * len(sizes), chain(sizes), tiles)
    deals = [
        each_layer(sizes, tiles),
        one_after_the_other(sizes, tiles),
        at_random(sizes, tiles, np.random.default_rng(seed)),
        runs_at_random(sizes, tiles, np.random.default_rng(seed)),
        partition.greedy(runs, sizes, tiles, tiles_per_chip=max(1, tiles // 2)),
    ]
    for assignment in deals:
        check(assignment, sizes, tiles)


@settings(max_examples=40, deadline=None)
@given(sizes=SIZES, tiles=TILES)
def test_linear_and_random_deals_differ_by_one_neuron_at_most(sizes: tuple[int, ...], tiles: int) -> None:
    rng = np.random.default_rng(0)
    for assignment in (
        one_after_the_other(sizes, tiles),
        at_random(sizes, tiles, rng),
        runs_at_random(sizes, tiles, rng),
    ):
        held = load(assignment, tiles)
        assert held.max() - held.min() <= 1
    for share, size in zip(each_layer(sizes, tiles), sizes, strict=True):
        assert np.array_equal(share.tiles, np.arange(min(size, tiles)))
        assert share.neurons.max() - share.neurons.min() <= 1


def test_seeds_decide() -> None:
    def assignment(seed: int) -> list[list[int]]:
        return [share.tiles.tolist() for share in at_random((30, 20), 40, np.random.default_rng(seed))]

    assert assignment(1) == assignment(1)
    assert assignment(1) != assignment(2)


def test_the_own_partition_evens_out_work_and_keeps_neighbours_on_a_chip() -> None:
    sizes, works = (400, 400, 400, 400), (1.0, 3.0, 3.0, 1.0)
    runs = partition.make_runs(sizes, works, chain(sizes), 100)
    assignment = partition.greedy(runs, sizes, 100, tiles_per_chip=50)
    work = np.zeros(100)
    for share, each in zip(assignment, works, strict=True):
        work[share.tiles] += each * share.neurons
    assert work.max() <= 1.3 * work.mean()
    assert [set((share.tiles // 50).tolist()) for share in assignment] == [{0}, {0}, {1}, {1}]


def test_the_graph_is_symmetric_and_weighs_what_flows() -> None:
    sizes = (4, 6, 2)
    flows = (NeuronFlow(0, 1, 1.0), NeuronFlow(1, 2, 0.5))
    runs = partition.make_runs(sizes, (1.0, 1.0, 1.0), flows, tiles=100)
    assert runs.neurons.tolist() == [1] * 12
    starts, neighbours, weights = partition.make_graph(runs, flows)
    dense = np.zeros((12, 12))
    for node in range(12):
        dense[node, neighbours[starts[node] : starts[node + 1]]] = weights[starts[node] : starts[node + 1]]
    expected = np.zeros((12, 12))
    expected[0:4, 4:10] = 1000
    expected[4:10, 10:12] = 500
    assert np.array_equal(dense, expected + expected.T)


def test_graphs_stay_small_however_large_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "MAX_EDGES", 100_000)
    sizes = (5_000, 5_000, 5_000)
    flows = chain(sizes)
    runs = partition.make_runs(sizes, (1.0,) * 3, flows, tiles=23_552)
    assert len(partition.make_graph(runs, flows)[1]) <= 2 * partition.MAX_EDGES
    assert int(runs.neurons.sum()) == 15_000


def test_metis_deals_every_neuron_once_with_either_form() -> None:
    pytest.importorskip("pymetis")
    sizes = (60, 40, 10)
    runs = partition.make_runs(sizes, (1.0,) * 3, chain(sizes), 16)
    for recursive in (False, True):
        assignment = partition.metis(runs, chain(sizes), sizes, 16, 0, recursive=recursive)
        check(assignment, sizes, 16)
        assert load(assignment, 16).max() < 3 * sum(sizes) / 16


def test_without_pymetis_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "has_metis", lambda: False)
    runs = partition.make_runs((4, 4), (1.0, 1.0), chain((4, 4)), 2)
    with pytest.raises(NoPartitionerError, match=r"SNNC-E324.*pip install 'snnc\[partition\]'"):
        partition.metis(runs, chain((4, 4)), (4, 4), 2, 0, recursive=False)


def test_unknown_strategies_are_refused_with_the_known_ones() -> None:
    with pytest.raises(StrategyError, match=r"SNNC-E323.*linear, random, metis, greedy"):
        check_strategy("best")


# ---- as plans ----------------------------------------------------------------------------------------------------------


def machine(tiles: int, chips: int = 1, **changes: float) -> Target:
    return replace(load_target("gc200"), name="small", tiles_per_chip=tiles, chips=chips, **changes)


@pytest.mark.wide
@settings(max_examples=30, deadline=None)
@given(
    widths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    tiles=st.integers(1, 40),
    chips=st.integers(1, 3),
    batch=st.integers(1, 9),
    strategy=st.sampled_from(["linear", "random", "greedy"]),
)
def test_plans_of_baselines_cover_every_neuron_and_sample_once(
    widths: list[int], tiles: int, chips: int, batch: int, strategy: str
) -> None:
    names = ["x0", *(f"p{n}" for n in range(len(widths)))]
    net = program(dict(zip(names, [7, *widths], strict=True)), [Wire(a, b) for a, b in itertools.pairwise(names)])
    plan = make_plan(net, machine(tiles, chips), steps=3, batch=batch, strategy=strategy)
    assert plan.strategy == strategy
    assert plan.bound_cycles <= plan.cycles * (1 + 1e-12)
    assert plan_from_json(plan_to_json(plan)) == plan
    for population in plan.populations:
        covered = np.zeros((population.neurons, batch), dtype=int)
        for block in population.blocks:
            assert 0 <= block.tile < plan.target.tiles
            covered[block.first : block.first + block.count, block.sample : block.sample + block.samples] += 1
        assert (covered == 1).all()


def test_baselines_are_priced_by_the_same_model() -> None:
    """On one tile every strategy is the same placement."""
    net = program({"x0": 5, "p0": 3, "p1": 2}, [Wire("x0", "p0"), Wire("p0", "p1")])
    cycles = {s: make_plan(net, machine(1), steps=4, batch=3, strategy=s).cycles for s in ("snnc", "linear", "random", "greedy")}
    assert len(set(cycles.values())) == 1


def test_the_same_baseline_twice_is_the_same_plan() -> None:
    net = program({"x0": 50, "p0": 40, "p1": 30}, [Wire("x0", "p0"), Wire("p0", "p0", 1), Wire("p0", "p1")])
    for strategy in ("linear", "random", "greedy"):
        first, second = (make_plan(net, machine(60), steps=5, batch=8, strategy=strategy) for _ in range(2))
        assert first == second


def test_snnc_is_faster_than_every_baseline_on_w1() -> None:
    plans = {
        s: make_plan(w1(), load_target("gc200"), steps=20, batch=64, strategy=s, effort=0) for s in ("snnc", "linear", "random", "greedy")
    }
    assert all(plans["snnc"].cycles < plan.cycles for strategy, plan in plans.items() if strategy != "snnc")


def test_a_baseline_that_does_not_fit_says_its_bytes() -> None:
    with pytest.raises(BaselineTooBigError, match=r"SNNC-E325.*'linear'.*needs [\d,]+ bytes and has 60,000") as caught:
        make_plan(w1(), machine(300, tile_bytes=60_000), steps=100, batch=64, strategy="linear")
    assert caught.value.needed > 60_000


def test_metis_alone_makes_a_plan() -> None:
    pytest.importorskip("pymetis")
    plan = make_plan(w1(), machine(60), steps=5, batch=8, strategy="metis")
    assert plan.strategy == "metis"


def test_data_reach_exactly_the_scattered_tiles_that_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = []
    monkeypatch.setattr(search, "supersteps", lambda layout: priced.append(layout) or supersteps(layout))
    net = program({"x0": 30, "p0": 12, "p1": 9}, [Wire("x0", "p0"), Wire("p0", "p1")])
    make_plan(net, machine(40), steps=3, batch=4, strategy="random")
    layout = next(found for found in priced if np.diff(found.ranges["p0"].tiles).max() > 1)
    readers = np.zeros(40, dtype=bool)
    for where in layout.ranges.values():
        readers[where.tiles] = True
    for relays in layout.relays.values():
        for relay in relays:
            readers[relay.tile] = False
    got = windows_to_blocks(layout).received > 0
    assert np.array_equal(got & readers, readers)
    deltas = deltas_to_sources(layout).received > 0
    assert np.array_equal(np.nonzero(deltas)[0], layout.ranges["p0"].tiles)
