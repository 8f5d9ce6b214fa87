"""Samples of a tile that workers share unevenly, in twos: source gradients load two at a time."""

import numpy as np
import pytest
from poplar_projects import machine
from windowed_nets import Windowed, deep

from snnc.compiler.mapping.grouping import neurons_per_tile
from snnc.compiler.mapping.placement import Placement
from snnc.compiler.mapping.tile_range import TileRange
from snnc.inspect.profile import read_profile


def whole_populations(problem):
    """Each population on one tile, its neurons undivided."""
    layers = enumerate(problem.network.layers)
    yield Placement(tuple(TileRange((i,), neurons_per_tile(layer.neurons, 1), ((0, problem.batch),), 1) for i, layer in layers), 1)


def test_parts_of_several_sizes_train_as_the_reference_in_the_cycles_predicted():
    graph = deep(np.random.default_rng(3), (10, 13))
    case = Windowed(graph, machine(20), batch=16, gradients="dense", window=None, placer=whole_populations)
    assert [(b.sample, b.samples) for b in case.plan.populations[0].blocks] == [(0, 4), (4, 4), (8, 2), (10, 2), (12, 2), (14, 2)]
    assert case.worst_error() <= 1e-5
    engine = case.open()
    engine.train_batch(*case.data(0), 0.0)
    emulated = read_profile(case.plan, engine.profile()["emulator"])
    assert emulated is not None
    name = "backward: relays and source gradients"
    predicted = next(p.runs * (p.compute + p.sync + p.exchange) for p in case.plan.phases if p.name == name)
    assert predicted == pytest.approx(sum(emulated.phases[name].values()), rel=0.01)
