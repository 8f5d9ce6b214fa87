"""Runs of tiles over one another: what a change of place or width costs, against the sum over all tiles."""

from __future__ import annotations

import numpy as np
import pytest

from snnc.compiler.tiles.placement.choices import Choice
from snnc.compiler.tiles.placement.cut import Cut
from snnc.compiler.tiles.placement.sharing import POWERS, _Costs, _Descent, _Take, _takes

TILES = 40


def choice(random: np.random.Generator, neurons: int, replicas: int, limit: float = 1e9) -> Choice:
    parts = np.cumsum(random.uniform(0, 5, (3, neurons)), axis=1)
    return Choice(Cut(replicas, 1), lambda: parts, 10 * np.arange(1, neurons + 1), limit, neurons)


def descent(seed: int, limit: float = 1e9) -> _Descent:
    random = np.random.default_rng(seed)
    options = [tuple(choice(random, neurons, replicas) for replicas in (1, 2, 4)) for neurons in (11, 14, 5)]
    takes = [_takes(some, TILES) for some in options]
    places = np.unique(np.linspace(0, TILES, 9, endpoint=False).astype(np.int64))
    return _Descent(takes, TILES, limit, places, [(some[0], 0) for some in takes])


def norm(search: _Descent, state: list[tuple[_Take, int]], power: int) -> float:
    """By its definition, tile after tile."""
    total = np.zeros((3, TILES))
    for take, first in state:
        dealt = np.array([len(some) for some in np.array_split(np.arange(take.choice.neurons), take.width)])
        for replica in range(take.choice.cut.replicas):
            total[:, first + replica * take.width :][:, : take.width] += take.choice.parts[:, dealt - 1]
    exponent = 2.0**power
    return float((np.mean((total / search.scale) ** exponent, axis=1) ** (1 / exponent)).sum())


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_ends_where_no_population_alone_gains_much_from_another_take_or_place(seed: int) -> None:
    search = descent(seed)
    start = norm(search, search.state, POWERS[-1])
    search.run(range(3))
    reached = norm(search, search.state, POWERS[-1])
    assert reached < start
    for index, some in enumerate(search.takes):
        for take in some:
            for place in (*search.places[search.places <= TILES - take.tiles].tolist(), TILES - take.tiles):
                other = [*search.state[:index], (take, place), *search.state[index + 1 :]]
                assert norm(search, other, POWERS[-1]) > 0.97 * reached


@pytest.mark.parametrize("power", POWERS)
def test_costs_of_places_are_those_of_all_tiles(power: int) -> None:
    search = descent(7)
    rest = search.total - np.pad(search.state[1][0].load, ((0, 0), (0, TILES - search.state[1][0].tiles)))
    for take in search.takes[1]:
        cost, (chosen, place) = min((search_at(search, rest, take, power)), key=lambda found: found[0])
        wanted = norm(search, [search.state[0], (chosen, place), search.state[2]], power)
        assert cost == pytest.approx(wanted)


def search_at(search: _Descent, rest: np.ndarray, take: _Take, power: int) -> list[tuple[float, tuple[_Take, int]]]:
    places = np.arange(TILES - take.tiles + 1)
    costs = _Costs(rest, search.scale, power, search.limit).at(take, places)
    return [(float(c), (take, int(p))) for c, p in zip(costs, places, strict=True)]


@pytest.mark.parametrize("power", POWERS)
def test_no_place_costs_less_than_the_bound_on_a_take(power: int) -> None:
    search = descent(5)
    rest = search.total - np.pad(search.state[2][0].load, ((0, 0), (0, TILES - search.state[2][0].tiles)))
    bounds = _Costs(rest, search.scale, power, search.limit).least(search.takes[2])
    for take, bound in zip(search.takes[2], bounds, strict=True):
        least = min(cost for cost, _ in search_at(search, rest, take, power))
        assert 0.5 * least < bound <= least


def test_tiles_hold_no_more_than_they_may() -> None:
    search = descent(3, limit=160.0)
    search.run(range(3))
    assert search.total[-1].max() <= 160
