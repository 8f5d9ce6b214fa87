"""Samples of a tile that workers share unevenly: in pairs, and as evenly as possible, where source gradients load some singly."""

import numpy as np
import pytest
from poplar_projects import machine
from windowed_nets import Windowed, deep

from snnc.compiler.tiles.blocks.grouping import neurons_per_tile
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.replan import as_planned
from snnc.report.profile import read_profile

TWOS = [(0, 4), (4, 4), (8, 2), (10, 2), (12, 2), (14, 2)]
EVEN = [(0, 3), (3, 3), (6, 3), (9, 3), (12, 2), (14, 2)]


def whole_populations(paired):
    """Each population on one tile, its neurons undivided."""

    def place(problem):
        whole = ((0, problem.batch),)
        layers = enumerate(problem.network.layers)
        yield Placement(tuple(TileRange((i,), neurons_per_tile(x.neurons, 1), whole, 1, paired=paired) for i, x in layers), 1)

    return place


@pytest.mark.wide
@pytest.mark.parametrize(("paired", "parts"), [(True, TWOS), (False, EVEN)], ids=["twos", "even"])
def test_parts_of_several_sizes_train_as_the_reference_in_the_cycles_predicted(paired, parts):
    graph = deep(np.random.default_rng(3), (10, 13))
    case = Windowed(graph, machine(20), batch=16, gradients="dense", window=None, placer=whole_populations(paired))
    assert [(b.sample, b.samples) for b in case.plan.populations[0].blocks] == parts
    assert case.worst_error() <= 1e-5
    engine = case.open()
    engine.train_batch(*case.data(0), 0.0)
    emulated = read_profile(case.plan, engine.profile()["emulator"])
    assert emulated is not None
    name = "backward: relays and source gradients"
    predicted = next(p.runs * (p.compute + p.sync + p.exchange) for p in case.plan.phases if p.name == name)
    assert predicted == pytest.approx(sum(emulated.phases[name].values()), rel=0.01)
    again = make_plan(case.program, machine(20), steps=12, batch=16, gradients="dense", placer=as_planned(case.plan))
    assert [p.blocks for p in again.populations] == [p.blocks for p in case.plan.populations]


def test_the_search_deals_samples_evenly_where_that_is_faster():
    case = Windowed(deep(np.random.default_rng(3), (10, 13)), machine(3), batch=16, gradients="dense", window=None)
    in_twos = make_plan(case.program, machine(3), steps=12, batch=16, gradients="dense", placer=whole_populations(True))
    assert any([(b.sample, b.samples) for b in p.blocks[:6]] == EVEN for p in case.plan.populations)
    assert case.plan.cycles < in_twos.cycles
