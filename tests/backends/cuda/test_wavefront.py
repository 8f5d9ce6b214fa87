"""Schedule of populations: every read is at least one barrier after its write, and no schedule has fewer barriers."""

import math
from itertools import product

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnc.backends.cuda.schedule.wavefront import wavefront

NAMES = tuple("abcde")


@st.composite
def networks(draw):
    """Edges whose cycles have delays: without a delay they only go forwards."""
    found = []
    for before, after in product(NAMES, NAMES):
        if draw(st.booleans()):
            found.append((before, after, draw(st.integers(0 if before < after else 1, 3))))
    return found


def fewest(edges):
    """The largest ratio of populations to delays over all cycles, by going through them."""
    graph = nx.DiGraph()
    for before, after, delay in edges:
        known = graph.get_edge_data(before, after, {"delay": delay})["delay"]
        graph.add_edge(before, after, delay=min(known, delay))
    ratios = [len(c) / sum(graph[a][b]["delay"] for a, b in zip(c, (*c[1:], c[0]), strict=True)) for c in nx.simple_cycles(graph)]
    return max(1, math.ceil(max(ratios, default=0)))


@given(networks())
def test_whoever_reads_comes_a_barrier_later_with_as_few_barriers_as_cycles_allow(edges):
    found = wavefront(NAMES, edges)
    barriers = len(found.stretches)
    times = {turn.name: turn.skew * barriers + number for number, stretch in enumerate(found.stretches) for turn in stretch}
    assert sorted(times) == sorted(NAMES)
    for before, after, delay in edges:
        assert times[before] - barriers * delay < times[after]
    assert found.skew == max(times.values()) // barriers
    assert barriers == fewest(edges)


def test_a_cycle_without_delay_is_refused():
    with pytest.raises(ValueError, match="no delay"):
        wavefront(["a", "b"], [("a", "b", 0), ("b", "a", 0)])
