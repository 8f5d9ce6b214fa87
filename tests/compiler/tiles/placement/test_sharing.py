"""Overlapping runs of tiles: the cost of a change of position or width, compared with the sum over all tiles."""

from __future__ import annotations

import numpy as np
import pytest

from snnc.compiler.tiles.blocks.grouping import Cut
from snnc.compiler.tiles.placement.choices import Choice
from snnc.compiler.tiles.placement.sharing import POWERS, _allocations, _Costs, _Descent, _LoadedAllocation

TILES = 40


def choice(random: np.random.Generator, neurons: int, replicas: int, limit: float = 1e9) -> Choice:
    parts = np.cumsum(random.uniform(0, 5, (3, neurons)), axis=1)
    return Choice(Cut(replicas, 1), lambda: parts, 10 * np.arange(1, neurons + 1), limit, neurons)


def descent(seed: int, limit: float = 1e9) -> _Descent:
    random = np.random.default_rng(seed)
    options = [tuple(choice(random, neurons, replicas) for replicas in (1, 2, 4)) for neurons in (11, 14, 5)]
    allocations = [_allocations(some, TILES) for some in options]
    places = np.unique(np.linspace(0, TILES, 9, endpoint=False).astype(np.int64))
    return _Descent(allocations, TILES, limit, places, [(some[0], 0) for some in allocations])


def norm(search: _Descent, state: list[tuple[_LoadedAllocation, int]], power: int) -> float:
    """By its definition, tile after tile."""
    total = np.zeros((3, TILES))
    for allocation, first in state:
        dealt = np.array([len(some) for some in np.array_split(np.arange(allocation.choice.neurons), allocation.width)])
        for replica in range(allocation.choice.cut.replicas):
            total[:, first + replica * allocation.width :][:, : allocation.width] += allocation.choice.parts[:, dealt - 1]
    exponent = 2.0**power
    return float((np.mean((total / search.scale) ** exponent, axis=1) ** (1 / exponent)).sum())


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_ends_where_no_population_alone_gains_much_from_another_take_or_place(seed: int) -> None:
    search = descent(seed)
    start = norm(search, search.state, POWERS[-1])
    search.run(range(3))
    reached = norm(search, search.state, POWERS[-1])
    assert reached < start
    for index, some in enumerate(search.allocations):
        for allocation in some:
            for place in (*search.places[search.places <= TILES - allocation.tiles].tolist(), TILES - allocation.tiles):
                other = [*search.state[:index], (allocation, place), *search.state[index + 1 :]]
                assert norm(search, other, POWERS[-1]) > 0.97 * reached


@pytest.mark.parametrize("power", POWERS)
def test_costs_of_places_are_those_of_all_tiles(power: int) -> None:
    search = descent(7)
    rest = search.total - np.pad(search.state[1][0].load, ((0, 0), (0, TILES - search.state[1][0].tiles)))
    for allocation in search.allocations[1]:
        cost, (chosen, place) = min((search_at(search, rest, allocation, power)), key=lambda found: found[0])
        wanted = norm(search, [search.state[0], (chosen, place), search.state[2]], power)
        assert cost == pytest.approx(wanted)


def search_at(
    search: _Descent, rest: np.ndarray, allocation: _LoadedAllocation, power: int
) -> list[tuple[float, tuple[_LoadedAllocation, int]]]:
    places = np.arange(TILES - allocation.tiles + 1)
    costs = _Costs(rest, search.scale, power, search.limit).at(allocation, places)
    return [(float(c), (allocation, int(p))) for c, p in zip(costs, places, strict=True)]


@pytest.mark.parametrize("power", POWERS)
def test_no_place_costs_less_than_the_bound_on_a_take(power: int) -> None:
    search = descent(5)
    rest = search.total - np.pad(search.state[2][0].load, ((0, 0), (0, TILES - search.state[2][0].tiles)))
    bounds = _Costs(rest, search.scale, power, search.limit).least(search.allocations[2])
    for allocation, bound in zip(search.allocations[2], bounds, strict=True):
        least = min(cost for cost, _ in search_at(search, rest, allocation, power))
        assert 0.5 * least < bound <= least


def test_tiles_hold_no_more_than_they_may() -> None:
    search = descent(3, limit=160.0)
    search.run(range(3))
    assert search.total[-1].max() <= 160
