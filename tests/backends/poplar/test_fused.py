"""Relays that look for spikes while neurons compute: the emulated program compared with the reference, and its cost."""

import numpy as np
import pytest
from indexed_nets import sparse
from nets import join, linear
from poplar_projects import machine
from wide import sampled
from windowed_nets import Windowed, anywhere, deep, tangled, undivided

from snnc.compiler.ir.graph import Input, OneToOne
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile


def branches(random):
    """Connections of several delays forward and back, each long enough for spikes to arrive; inputs of spikes, of values, of one step."""
    graph = deep(random, (20, 33, 12))
    graph.add("image", Input((9,)))
    join(graph, "look", linear(random, 33, 9), "image", "h1")
    join(graph, "ahead", linear(random, 12, 30), "x", "h2")
    join(graph, "skip", linear(random, 4, 20), "h0", "readout")
    join(graph, "rec", linear(random, 33, 33), "h1", "h1", delay=2)
    join(graph, "gain", OneToOne(random.normal(size=12).astype(np.float32), learnable=True), "h2", "h2", delay=3)
    join(graph, "back", linear(random, 20, 12), "h2", "h0", delay=6)
    return graph


def sparse_branches(random):
    """The same with a sparse connection beside dense ones."""
    graph = branches(random)
    join(graph, "few", sparse(random, 12, 20, 0.2), "h0", "h2")
    return graph


CASES = {
    "one tile": (deep, machine(1), {"batch": 2}),
    "four tiles": (deep, machine(4), {"batch": 7}),
    "dense gradients": (deep, machine(30), {"batch": 16, "gradients": "dense", "window": None}),
    "replicas over two chips": (branches, machine(24, 2), {"batch": 7, "placer": anywhere(np.random.default_rng(4))}),
    "branches": (sparse_branches, machine(5), {"batch": 5}),
    "what is dropped": (deep, machine(9), {"batch": 5, "mode": "drop", "capacity": 64}),
}


@pytest.mark.wide
@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_gradients_equal_those_of_the_reference(name):
    make, target, options = CASES[name]
    case = Windowed(make(np.random.default_rng(3)), target, **{"fused": True, **options})
    assert case.plan.latency == 2
    assert case.worst_error() <= 1e-5


@pytest.mark.wide
@pytest.mark.usefixtures("plans_as_for_users")
@pytest.mark.parametrize("name", sampled(["replicas over two chips", "four tiles"], 2))
def test_phases_take_what_was_predicted(name):
    make, target, options = CASES[name]
    graph = make(np.random.default_rng(3))
    case = Windowed(graph, target, **{"fused": True, **options})
    seen = measure_activity(case.program, case.data(0)[0], "the test's inputs")
    measured = {"activity": seen.mean, "counts": seen.counts}
    if options.get("gradients") != "dense":
        measured |= {"support": seen.support, "support_counts": seen.support_counts}
    case = Windowed(graph, target, **{"fused": True, **options, **measured, "capacity": 64})
    engine = case.open()
    engine.train_batch(*case.data(0), 0.0)
    emulated = read_profile(case.plan, engine.profile()["emulator"])
    assert emulated is not None
    assert emulated.complete
    predicted = {p.name: p.runs * (p.compute + p.sync + p.exchange) for p in case.plan.phases}
    found = {name: sum(cycles.values()) for name, cycles in emulated.phases.items()}
    forward = {"forward: counters", "forward: windows", "forward: neurons"}
    assert forward <= found.keys()
    assert {name: predicted[name] for name in forward} == pytest.approx({name: found[name] for name in forward}, rel=0.05)
    assert sum(predicted.values()) == pytest.approx(engine.profile()["emulator"]["cycles_last_run"], rel=0.05)


@pytest.mark.wide
def test_both_ways_give_the_same_numbers():
    graph, seen = deep(np.random.default_rng(3)), []
    for fused in (False, True):
        case = Windowed(graph, machine(20), placer=undivided(12), fused=fused)
        engine = case.open()
        engine.train_batch(*case.data(0), 1e-3)
        seen.append(engine.gradients())
        assert case.plan.latency == 1 + fused
    assert all(np.array_equal(seen[0][name], seen[1][name]) for name in seen[0])


def test_a_loop_that_leaves_no_time_takes_turns():
    case = Windowed(tangled(np.random.default_rng(3)), machine(9), fused=True)
    assert case.plan.latency == 1


def test_windows_that_may_be_followed_by_others_take_turns():
    case = Windowed(deep(np.random.default_rng(3)), machine(9), fused=True, capacity=3)
    assert case.plan.latency == 1
