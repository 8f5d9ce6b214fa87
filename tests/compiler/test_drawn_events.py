"""Spikes that column groups look up, summed over ranges of samples, compared with the search of the emitted codelets, one by one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import snnc
from snnc.compiler.tiles.supersteps.indexed_events import WindowSpikes, _lookups

VALUES, ROWS, SAMPLES = 9, 5, 8


def looked_up(ids, low, keys, span):
    """Lookups of each_event of indexed_runs.hpp, with rows from `low` on, or with `keys`."""
    if keys is None:
        after = [i for i in ids if i >= low]
        return next((n + 1 for n, i in enumerate(after) if i - low >= span), len(after))
    start = sum(i < keys[0] for i in ids) if len(keys) else len(ids)
    e, row = start, 0
    while e < len(ids) and row < len(keys):
        while row < len(keys) and keys[row] < ids[e]:
            row += 1
        e += 1
    return e - start + row


def tables_of(keyed):
    """Four groups: with sources at the start, at the end, none, and again at the end."""
    if not keyed:
        low, span, keys = np.array([0, 2, 4, 5]), np.array([3, 7, 0, 4]), None
        tables = SimpleNamespace(span=span, keyed=False, inputs=VALUES, extent=(low, low + span))
        return tables, list(zip(low, [None] * 4, span, strict=True))
    each = [[0, 2], [2, 3, 8], [], [5, 8]]
    span, keys = np.array([len(k) for k in each]), np.concatenate([np.array(k, dtype=np.int64) for k in each])
    low, high = np.array([0, 2, 0, 5]), np.array([3, 9, 0, 9])
    start = np.concatenate([[0], np.cumsum(span)])
    tables = SimpleNamespace(span=span, keyed=True, keys=keys, key_start=start, inputs=VALUES, extent=(low, high))
    return tables, [(int(low[g]), each[g], int(span[g])) for g in range(4)]


@pytest.mark.parametrize("density", [0.05, 0.5])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 8)],
        [(0, 4), (4, 4)],
        [(0, 3), (2, 4), (0, 8), (3, 1)],
        [(2, 1), (2, 1), (6, 2)],
    ],
)
def test_lookups_of_ranges_are_those_of_the_search_for_each_sample(ranges, keyed, density):
    random = np.random.default_rng(0)
    spikes = (random.random((VALUES, ROWS, SAMPLES)) < density).astype(int)
    tables, groups = tables_of(keyed)
    read = WindowSpikes(csr_array(spikes.reshape(VALUES, -1)), SAMPLES, np.arange(ROWS))
    seen = set()
    for apart, sent, passed in _lookups(tables, read, *np.array(ranges).T):
        events, lookups = sent.toarray().reshape(VALUES, len(apart), ROWS), passed.reshape(len(groups), len(apart), ROWS)
        for place, number in enumerate(apart.tolist()):
            first, count = ranges[number]
            assert np.array_equal(events[:, place], spikes[:, :, first : first + count].sum(axis=2))
            for group, (low, keys, span) in enumerate(groups):
                for row in range(ROWS):
                    ids = [np.flatnonzero(spikes[:, row, sample]).tolist() for sample in range(first, first + count)]
                    assert lookups[group, place, row] == sum(looked_up(one, low, keys, span) for one in ids)
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
