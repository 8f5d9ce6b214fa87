"""Baselines of placement: every neuron has one tile, work is even where that is what a baseline does, seeds decide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnc.compiler.mapping.errors import NoPartitionerError, StrategyError
from snnc.compiler.mapping.strategies import Deal, at_random, check_strategy, linear, partition
from snnc.compiler.mapping.strategies.partition import Flow

SIZES = st.lists(st.integers(1, 50), min_size=1, max_size=5).map(tuple)
TILES = st.integers(1, 70)


def chain(sizes: tuple[int, ...]) -> tuple[Flow, ...]:
    return tuple(Flow(n, n + 1, 0.1) for n in range(len(sizes) - 1))


def load(deal: Deal, tiles: int) -> np.ndarray:
    """Neurons on each tile, all layers."""
    found = np.zeros(tiles, dtype=int)
    for share in deal:
        found[share.tiles] += share.neurons
    return found


def check(deal: Deal, sizes: tuple[int, ...], tiles: int) -> None:
    assert [int(share.neurons.sum()) for share in deal] == list(sizes)
    for share in deal:
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
        linear.each_layer(sizes, tiles),
        linear.one_after_the_other(sizes, tiles),
        at_random.one_by_one(sizes, tiles, np.random.default_rng(seed)),
        at_random.in_runs(sizes, tiles, np.random.default_rng(seed)),
        partition.greedy(runs, sizes, tiles, tiles_per_chip=max(1, tiles // 2)),
    ]
    for deal in deals:
        check(deal, sizes, tiles)


@settings(max_examples=40, deadline=None)
@given(sizes=SIZES, tiles=TILES)
def test_linear_and_random_deals_differ_by_one_neuron_at_most(sizes: tuple[int, ...], tiles: int) -> None:
    rng = np.random.default_rng(0)
    for deal in (linear.one_after_the_other(sizes, tiles), at_random.one_by_one(sizes, tiles, rng), at_random.in_runs(sizes, tiles, rng)):
        held = load(deal, tiles)
        assert held.max() - held.min() <= 1
    for share, size in zip(linear.each_layer(sizes, tiles), sizes, strict=True):
        assert np.array_equal(share.tiles, np.arange(min(size, tiles)))
        assert share.neurons.max() - share.neurons.min() <= 1


def test_seeds_decide() -> None:
    def deal(seed: int) -> list[list[int]]:
        return [share.tiles.tolist() for share in at_random.one_by_one((30, 20), 40, np.random.default_rng(seed))]

    assert deal(1) == deal(1)
    assert deal(1) != deal(2)


def test_the_own_partition_evens_out_work_and_keeps_neighbours_on_a_chip() -> None:
    sizes, works = (400, 400, 400, 400), (1.0, 3.0, 3.0, 1.0)
    runs = partition.make_runs(sizes, works, chain(sizes), 100)
    deal = partition.greedy(runs, sizes, 100, tiles_per_chip=50)
    work = np.zeros(100)
    for share, each in zip(deal, works, strict=True):
        work[share.tiles] += each * share.neurons
    assert work.max() <= 1.3 * work.mean()
    assert [set((share.tiles // 50).tolist()) for share in deal] == [{0}, {0}, {1}, {1}]


def test_the_graph_is_symmetric_and_weighs_what_flows() -> None:
    sizes = (4, 6, 2)
    flows = (Flow(0, 1, 1.0), Flow(1, 2, 0.5))
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


def test_graphs_stay_small_however_large_the_layers() -> None:
    sizes = (20_000, 20_000, 20_000)
    flows = chain(sizes)
    runs = partition.make_runs(sizes, (1.0,) * 3, flows, tiles=23_552)
    assert len(partition.make_graph(runs, flows)[1]) <= 2 * partition.MOST_EDGES
    assert int(runs.neurons.sum()) == 60_000


def test_metis_deals_every_neuron_once_with_either_form() -> None:
    pytest.importorskip("pymetis")
    sizes = (60, 40, 10)
    runs = partition.make_runs(sizes, (1.0,) * 3, chain(sizes), 16)
    for recursive in (False, True):
        deal = partition.metis(runs, chain(sizes), sizes, 16, 0, recursive=recursive)
        check(deal, sizes, 16)
        assert load(deal, 16).max() < 3 * sum(sizes) / 16


def test_without_pymetis_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "has_metis", lambda: False)
    runs = partition.make_runs((4, 4), (1.0, 1.0), chain((4, 4)), 2)
    with pytest.raises(NoPartitionerError, match=r"SNNC-E324.*pip install 'snnc\[partition\]'"):
        partition.metis(runs, chain((4, 4)), (4, 4), 2, 0, recursive=False)


def test_unknown_strategies_are_refused_with_the_known_ones() -> None:
    with pytest.raises(StrategyError, match=r"SNNC-E323.*linear, random, metis, greedy"):
        check_strategy("best")
