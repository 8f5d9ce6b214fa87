"""An order of neurons in which contiguous runs have equal work."""

import numpy as np
import pytest

from snnc.compiler.tiles.partition.even import STRETCH, even_order


def runs(work, order, length):
    """Sums over runs of neurons, over their mean."""
    some = work[order][: len(work) // length * length].reshape(-1, length).sum(axis=1)
    return some / some.mean()


@pytest.mark.parametrize("seed", range(2))
def test_runs_differ_less_than_in_the_authors_order(seed):
    random = np.random.default_rng(seed)
    work = random.poisson(44, (2, 2500)).astype(float)
    order = even_order(work)
    for kind in work:
        for length in (10, 30):
            assert runs(kind, order, length).std() < 0.35 * runs(kind, np.arange(2500), length).std()


def test_hubs_lie_apart():
    random = np.random.default_rng(0)
    work = np.where(random.random(2000) < 0.01, 400.0, random.poisson(40, 2000))
    assert runs(work, even_order(work[None]), 30).max() < runs(work, np.arange(2000), 30).max()
    hubs = np.flatnonzero(work[even_order(work[None])] == 400)
    assert np.diff(hubs).min() > 1


@pytest.mark.parametrize("neurons", [1, 5, STRETCH + 1])
def test_every_neuron_has_a_place_near_its_own(neurons):
    work = np.random.default_rng(1).uniform(0, 1, (2, neurons))
    order = even_order(work)
    assert sorted(order) == list(range(neurons))
    assert np.abs(order - np.arange(neurons)).max() < STRETCH


def test_alike_neurons_stay_where_they_are():
    assert even_order(np.ones((2, 40))).tolist() == list(range(40))
    assert even_order(np.zeros((1, 3))).tolist() == [0, 1, 2]
