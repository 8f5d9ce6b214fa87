"""A plan for a machine of several chips is never slower than the plan for one of its chips."""

from dataclasses import replace

import pytest

import snnc
from snnc.compiler.machines import load_target
from snnc.compiler.tiles.planning import placing
from snnc.compiler.tiles.planning.parting import Mapped
from snnc.driver.activity import assumed_activity
from snnc.driver.lowering import lower_graph
from snnc.options.compile_options import options

TILES = 6


def machine(chips):
    return replace(load_target("pod4"), name=f"tiny x {chips}", chips=chips, tiles_per_chip=TILES)


def dense():
    return snnc.Sequential(20, snnc.Dense(30), snnc.LIF(), snnc.Dense(4), snnc.LI())


def sparse():
    net = snnc.Network("sparse", seed=1)
    given, hidden, readout = net.input(16), net.population(40, snnc.LIF()), net.population(3, snnc.LI())
    net.connect(given, hidden, snnc.Sparse(fan_in=4))
    net.connect(hidden, hidden, snnc.Sparse(fan_in=6), delay=1)
    net.connect(hidden, readout, snnc.Dense())
    net.output(readout, name="y")
    return net


def mapped(net, there, activity, **given):
    chosen = options("pod4", steps=6, batch=2, loss="ce_mean_membrane", optimizer="adam")
    found = lower_graph(net().graph(), chosen)
    spikes = assumed_activity(found.program, activity)
    return placing.map_graph(found.ready, found.program, chosen.for_backend().for_plan(), spikes, machine=machine(there), **given)


@pytest.mark.representative("sparse-0.1")
@pytest.mark.parametrize(("net", "activity"), [(dense, 0.02), (dense, 0.1), (sparse, 0.1), (sparse, 0.02)])
def test_four_chips_are_planned_no_slower_than_one(net, activity):
    assert mapped(net, 4, activity).plan.cycles <= mapped(net, 1, activity).plan.cycles


def test_one_chip_is_taken_where_the_search_on_all_misses_what_is_best(monkeypatch):
    one = mapped(dense, 4, 0.05, chips=1).plan.cycles
    searched = placing._map_graph

    def slow(*given, chips, **options):
        found = searched(*given, chips=chips, **options)
        later = tuple(replace(phase, compute=phase.compute + 5000) for phase in found.plan.phases)
        return found if chips == 1 else Mapped(replace(found.plan, phases=later))

    monkeypatch.setattr(placing, "_map_graph", slow)
    found = mapped(dense, 4, 0.05).plan
    assert found.cycles == one
    assert found.chips_used == 1


def test_chips_that_are_asked_for_are_taken():
    assert mapped(dense, 4, 0.05, chips=2).plan.chips_used <= 2
