"""Tiles shared so that the total time of a step's parts is minimal, compared with brute force."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wide import examples

from snnc.compiler.tiles.blocks.grouping import Cut
from snnc.compiler.tiles.memo import Memo
from snnc.compiler.tiles.placement.balance import Balance
from snnc.compiler.tiles.placement.choices import Allocation, Choice


def choice(neurons: int, replicas: int, slopes: tuple[float, ...]) -> Choice:
    """Parts that grow with the neurons on a tile, and fall with the replicas."""
    n = np.arange(1, neurons + 1)
    parts = np.maximum.accumulate(np.array([np.ceil(5 + slope * n / replicas) for slope in slopes]), axis=1)
    return Choice(Cut(replicas, 1), lambda: parts, n, limit=float(neurons), neurons=neurons)


def cost(allocations: list[Allocation]) -> float:
    return float(np.array([allocation.choice.parts[:, allocation.neurons - 1] for allocation in allocations]).max(axis=0).sum())


def every_take(some: tuple[Choice, ...]) -> list[Allocation]:
    return [Allocation(c, width) for c in some for width in range(1, c.neurons + 1)]


LAYERS = st.lists(st.tuples(st.integers(1, 9), st.tuples(st.integers(1, 40), st.integers(1, 40))), min_size=1, max_size=3)


@given(LAYERS, st.integers(4, 30))
@settings(max_examples=examples(20, 60), deadline=None)
def test_the_sum_of_parts_never_grows_and_the_tiles_suffice(layers, tiles):
    options = [tuple(choice(neurons, r, slopes) for r in (1, 2)) for neurons, slopes in layers]
    start = [Allocation(some[0], 1) for some in options]
    if len(start) > tiles:
        return
    found = Balance(options, Memo()).improve(start, tiles)
    assert sum(allocation.tiles for allocation in found) <= tiles
    assert cost(found) <= cost(start)


@pytest.mark.parametrize("seed", range(6))
def test_it_comes_close_to_the_best_of_all_takes(seed):
    rng = np.random.default_rng(seed)
    options = [tuple(choice(int(rng.integers(3, 9)), r, tuple(rng.uniform(5, 60, 2))) for r in (1, 2)) for _ in range(2)]
    options = [tuple(replace(c) for c in some if c.neurons == some[0].neurons) for some in options]
    fitting = [allocations for allocations in itertools.product(*map(every_take, options)) if sum(t.tiles for t in allocations) <= 10]
    best = min(cost(list(allocations)) for allocations in fitting)
    # From the answer that makes the slowest tile of all parts together fastest, as the placement starts.
    start = min(fitting, key=lambda allocations: max(float(t.choice.parts[:, t.neurons - 1].sum()) for t in allocations))
    assert best <= cost(Balance(options, Memo()).improve(start, 10)) <= 1.1 * best


def test_populations_of_one_structure_get_the_same_take():
    some = (choice(8, 1, (10.0, 3.0)), choice(8, 2, (10.0, 3.0)))
    other = (choice(4, 1, (2.0, 30.0)),)
    found = Balance([some, other, some], Memo()).improve([Allocation(some[0], 1), Allocation(other[0], 1), Allocation(some[0], 1)], 24)
    assert found[0] == found[2] or (found[0].choice is found[2].choice and found[0].width == found[2].width)
    assert cost(found) < cost([Allocation(some[0], 1), Allocation(other[0], 1), Allocation(some[0], 1)])
