from __future__ import annotations

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnc.compiler.machines import load_target
from snnc.compiler.machines.chip_links import Flows, Routes, find_routes
from snnc.compiler.machines.errors import UnreachableChipError
from snnc.compiler.machines.target import Links, Target

A_LINK = 13.6e9 / 1.33e9
"""Bytes that one link of a GC200 carries in a tile cycle."""


def machine(chips: int, links: Links | None = None) -> Target:
    base = load_target("gc200")
    return replace(base, chips=chips, links=links or base.links)


def flows(*sent: tuple[int, tuple[int, ...], float]) -> Flows:
    found = Flows()
    for source, receivers, size in sent:
        found.send(source, receivers, size)
    return found


def test_two_chips_share_the_four_links_of_their_pair() -> None:
    routes = find_routes(machine(2))
    assert routes.cycles(flows((0, (1,), 4000))) == pytest.approx(1000 / A_LINK)
    assert routes.cycles(flows((0, (1,), 4000), (1, (0,), 4000))) == pytest.approx(1000 / A_LINK)  # both ways at once
    assert routes.cycles(flows((0, (1,), 4000), (0, (1,), 400))) == pytest.approx(1100 / A_LINK)


def test_in_a_machine_of_four_every_chip_is_a_neighbour() -> None:
    routes = find_routes(load_target("m2000"))
    assert all(len(routes.route(a, b)) == 1 for a in range(4) for b in range(4) if a != b)
    everyone = flows(*((a, (b,), 1000) for a in range(4) for b in range(4) if a != b))
    assert routes.cycles(everyone) == pytest.approx(500 / A_LINK)  # rails and diagonals have two links, pairs four
    assert routes.load(everyone) == dict.fromkeys([(a, b) for a in range(4) for b in range(4) if a != b], 1000)


def test_sixteen_chips_pass_data_on_along_the_rails() -> None:
    routes = find_routes(load_target("pod16"))
    assert routes.route(0, 12) == ((0, 2), (2, 4), (4, 6), (6, 8), (8, 10), (10, 12))
    assert routes.route(1, 13) == ((1, 3), (3, 5), (5, 7), (7, 9), (9, 11), (11, 13))
    assert routes.route(0, 13) == ((0, 3), (3, 5), (5, 7), (7, 9), (9, 11), (11, 13))
    # each of the four chips behind the middle sends to its counterpart before it: every rail between the machines carries two flows
    crossing = flows((4, (8,), 600), (6, (10,), 600), (5, (9,), 600), (7, (11,), 600))
    load = routes.load(crossing)
    assert load[6, 8] == load[7, 9] == 1200
    assert load[4, 6] == load[8, 10] == 600
    assert routes.cycles(crossing) == pytest.approx(1200 / 2 / A_LINK)


def test_a_multicast_crosses_each_link_of_its_tree_once() -> None:
    routes = find_routes(load_target("pod16"))
    once = flows((0, tuple(range(1, 16)), 700))
    load = routes.load(once)
    assert set(load.values()) == {700}
    assert len(load) == 15  # a tree over sixteen chips
    assert routes.cycles(once) == pytest.approx(700 / 2 / A_LINK)
    apart = flows(*((0, (b,), 700) for b in range(1, 16)))
    assert routes.load(apart)[0, 2] > 700


def test_the_closed_ring_of_a_large_machine_shortens_ways() -> None:
    target = load_target("pod64")
    assert len(find_routes(target).route(0, 62)) == 1
    assert len(find_routes(machine(64, replace(target.links, ring=False))).route(0, 62)) == 31


def test_a_switch_lets_each_chip_send_over_its_own_links() -> None:
    routes = find_routes(machine(5, Links(13.6e9, 5, switch=2)))
    assert routes.route(1, 4) == ((1, 5), (5, 4))
    assert routes.cycles(flows((0, (1, 2, 3, 4), 600))) == pytest.approx(300 / A_LINK)  # the switch copies
    assert routes.cycles(flows((0, (1,), 600), (2, (1,), 600))) == pytest.approx(600 / A_LINK)


def test_nothing_sent_takes_no_time() -> None:
    assert find_routes(load_target("gc200")).cycles(Flows()) == 0
    assert flows((0, (0,), 5), (1, (), 5), (1, (2,), 0)).bytes == {}


def test_transfers_between_single_chips() -> None:
    found = Flows()
    found.send_pairs(np.array([0, 2, 0, 1]), np.array([1, 1, 1, 1]), [10, 5, 3, 7], chips=3)
    assert found.bytes == flows((0, (1,), 13), (2, (1,), 5)).bytes


@pytest.mark.parametrize("links", [None, Links(1e9, 1), Links(1e9, 4, inside=((0, 1, 1), (2, 3, 1)))])
def test_chips_that_no_link_joins(links: Links | None) -> None:
    with pytest.raises(UnreachableChipError, match="SNNC-E331"):
        find_routes(replace(load_target("m2000"), links=links))


def _graph(target: Target) -> nx.Graph:
    found = nx.Graph()
    found.add_nodes_from(range(target.chips))
    assert target.links is not None
    found.add_edges_from((a, b) for a, b, _ in target.links.wires(target.chips))
    return found


@given(
    chips=st.integers(2, 14),
    size=st.integers(1, 5),
    extra=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3)), max_size=5),
    ring=st.booleans(),
    sent=st.lists(st.tuples(st.integers(0, 13), st.sets(st.integers(0, 13), max_size=5), st.integers(1, 100)), max_size=8),
)
def test_ways_are_shortest_and_carry_what_is_sent(
    chips: int, size: int, extra: list[tuple[int, int, int]], ring: bool, sent: list[tuple[int, set[int], int]]
) -> None:
    inside = [(n, n + 1, 1) for n in range(size - 1)] + [(a, b, n) for a, b, n in extra if a < b < size]
    target = machine(chips, Links(1e9, size, tuple(inside), ((size - 1, 0, 2),), ring))
    routes, oracle = find_routes(target), _graph(target)
    lengths = dict(nx.all_pairs_shortest_path_length(oracle))
    for a in range(chips):
        for b in range(chips):
            way = routes.route(a, b)
            assert len(way) == lengths[a][b]
            assert [x for x, _ in way] + [b] == [a] + [y for _, y in way]
    moved = flows(*((a, tuple(bs), n) for a, bs, n in sent if max({a, *bs}) < chips))
    apart = flows(*((a, (b,), n) for (a, bs), n in moved.bytes.items() for b in bs))
    hops = sum(n * lengths[a][next(iter(bs))] for (a, bs), n in apart.bytes.items())
    assert sum(routes.load(apart).values()) == hops
    assert sum(routes.load(moved).values()) <= hops
    assert routes.cycles(moved) <= routes.cycles(apart)
    for wire, size_ in routes.load(moved).items():
        assert size_ <= routes.load(apart)[wire]
    _check_trees(routes, moved)


def _check_trees(routes: Routes, moved: Flows) -> None:
    """A multicast's links form a tree: as many as the chips that they reach."""
    for (source, receivers), size in moved.bytes.items():
        load = routes.load(flows((source, tuple(receivers), size)))
        assert set(load.values()) == {size}
        assert len({b for _, b in load}) == len(load)
        assert receivers <= {b for _, b in load}


@pytest.mark.parametrize("chips", [2, 3, 4, 6])
def test_layers_in_a_row_lie_on_chips_in_the_order_of_their_numbers_and_no_order_loads_wires_less(chips: int) -> None:
    """Placement puts consecutive stages on consecutive chips; windows go on, deltas come back."""
    routes = find_routes(machine(chips))

    def busiest(order: tuple[int, ...]) -> float:
        there = [(a, (b,), 100.0) for a, b in itertools.pairwise(order)]
        return routes.cycles(flows(*there, *((b, (a,), size) for a, (b,), size in there)))

    assert busiest(tuple(range(chips))) == min(map(busiest, itertools.permutations(range(chips))))
