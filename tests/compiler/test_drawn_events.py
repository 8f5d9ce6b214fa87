"""Spikes that column groups look up, summed over ranges of samples, compared with sums over every value, step and sample."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import snnc
from snnc.compiler.tiles.supersteps.indexed_events import WindowSpikes, _lookups

VALUES, ROWS, SAMPLES = 9, 5, 8


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 8)],
        [(0, 4), (4, 4)],
        [(0, 3), (2, 4), (0, 8), (3, 1)],
        [(2, 1), (2, 1), (6, 2)],
    ],
)
def test_spikes_of_ranges_are_sums_over_their_samples(ranges):
    random = np.random.default_rng(0)
    spikes = random.integers(0, 2, (VALUES, ROWS, SAMPLES))
    low, high = np.array([0, 2, 4, 9]), np.array([3, 9, 4, 9])
    read = WindowSpikes(csr_array(spikes.reshape(VALUES, -1)), SAMPLES, np.arange(ROWS))
    seen = set()
    for apart, sent, passed in _lookups(SimpleNamespace(extent=(low, high)), read, *np.array(ranges).T):
        events, between = sent.toarray().reshape(VALUES, len(apart), ROWS), passed.reshape(len(low), len(apart), ROWS)
        for place, number in enumerate(apart.tolist()):
            first, count = ranges[number]
            wanted = spikes[:, :, first : first + count].sum(axis=2)
            assert np.array_equal(events[:, place], wanted)
            for group, (begin, end) in enumerate(zip(low, high, strict=True)):
                assert np.array_equal(between[group, place], wanted[begin:end].sum(axis=0))
            seen.add(number)
    assert seen == set(range(len(ranges)))


def test_windows_that_are_never_full_are_planned():
    net = snnc.Network("limited", seed=0)
    source = net.input((1, 12, 12), kind="spikes")
    maps = net.population((4, 6, 6), snnc.LIF(beta=0.9), name="maps")
    readout = net.population(3, snnc.LI(beta=0.9), name="readout")
    net.connect(source, maps, [snnc.Conv(4, 3, stride=2, padding=1)])
    net.connect(maps, readout, snnc.Dense())
    plan = snnc.estimate(net, "gc200", steps=4, batch=2, capacity=96, activity=0.01, loss="ce_count").plan
    assert plan.cycles > 0
