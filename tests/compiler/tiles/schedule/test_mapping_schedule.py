from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping_nets import Wire, program, w1

from snnc.compiler.tiles.errors import NoScheduleError
from snnc.compiler.tiles.mapped.network import describe
from snnc.compiler.tiles.schedule.schedule import Arc, find_stages, make_schedule

NAMES = ["p0", "p1", "p2", "p3", "p4"]


@st.composite
def graphs(draw: st.DrawFn) -> list[Arc]:
    """Arcs without a delay only run forward, so every cycle holds one."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), max_size=9))
    return [Arc(NAMES[a], NAMES[b], d if b > a else max(d, 1)) for a, b, d in pairs]


def holds(arcs: list[Arc], interval: int, stages: dict[str, int]) -> bool:
    return all(interval * a.delay + stages[a.target] - stages[a.source] >= 1 for a in arcs)


def solvable(arcs: list[Arc], interval: int) -> bool:
    """No closed walk may be longer than 0: all simple cycles, by brute force."""
    for size in range(1, len(NAMES) + 1):
        for cycle in itertools.permutations(NAMES, size):
            steps = list(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
            best = [[1 - interval * a.delay for a in arcs if (a.source, a.target) == step] for step in steps]
            if all(best) and sum(max(b) for b in best) > 0:
                return False
    return True


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_every_constraint_holds_and_the_interval_is_the_smallest(arcs: list[Arc]) -> None:
    interval, stages = find_stages(NAMES, arcs)
    assert interval >= 1
    assert holds(arcs, interval, stages)
    assert min(stages.values()) >= 0
    assert interval == 1 or not solvable(arcs, interval - 1)


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_no_stage_can_be_lowered(arcs: list[Arc]) -> None:
    interval, stages = find_stages(NAMES, arcs)
    for name in NAMES:
        tight = any(a.target == name and interval * a.delay + stages[name] - stages[a.source] == 1 for a in arcs)
        assert stages[name] == 0 or tight


def test_feed_forward_layers_follow_one_another() -> None:
    interval, stages = find_stages(NAMES, [Arc(a, b, 0) for a, b in itertools.pairwise(NAMES)])
    assert interval == 1
    assert list(stages.values()) == [0, 1, 2, 3, 4]


def test_a_cycle_of_two_layers_with_one_delay_needs_two_iterations_a_step() -> None:
    assert find_stages(["p0", "p1"], [Arc("p0", "p1", 0), Arc("p1", "p0", 1)]) == (2, {"p0": 0, "p1": 1})


def test_recurrence_within_a_layer_does_not_slow_the_wavefront() -> None:
    schedule = make_schedule(describe(w1()))
    assert (schedule.interval, dict(schedule.stages), dict(schedule.lags)) == (1, {"p0": 0, "p1": 1}, {"c0": 1, "c1": 1, "c2": 1})
    assert schedule.iterations(100) == 101


def test_inputs_of_deep_layers_wait() -> None:
    made = program({"x0": 3, "p0": 4, "p1": 5}, [Wire("x0", "p0"), Wire("p0", "p1"), Wire("x0", "p1")])
    assert dict(make_schedule(describe(made)).lags) == {"c0": 1, "c1": 1, "c2": 2}


def test_a_cycle_without_delay_is_refused() -> None:
    with pytest.raises(NoScheduleError, match=r"SNNC-E312.*p0, p1"):
        find_stages(["p0", "p1"], [Arc("p0", "p1", 0), Arc("p1", "p0", 0)])
