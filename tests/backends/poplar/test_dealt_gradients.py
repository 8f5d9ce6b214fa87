"""Weight gradients that the workers of a tile share by spikes: the emulated program against the reference and the prediction."""

import numpy as np
import pytest
from poplar_projects import machine
from windowed_nets import Windowed, deep, tangled

from snnc.compiler.ir.plan_json import plan_from_json, plan_to_json
from snnc.compiler.tiles.errors import MappingOptionError
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.placement.grouping import neurons_per_tile, split
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.placement.tile_range import TileRange
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile


def grouped(columns, replicas=1, neurons=7):
    """At most `neurons` on a tile, in so many column groups."""

    def place(problem):
        ranges, first = [], 0
        for layer in problem.network.layers:
            width = -(-layer.neurons // neurons)
            starts = tuple(first + r * width for r in range(replicas))
            ranges.append(TileRange(starts, neurons_per_tile(layer.neurons, width), tuple(split(problem.batch, replicas)), columns))
            first += width * replicas
        yield Placement(tuple(ranges), problem.target.chips)

    return place


CASES = {
    "dense gradients, uneven column groups and replicas, segments": (
        deep,
        machine(80),
        {"batch": 9, "gradients": "dense", "recompute": 5, "placer": grouped(2, 2)},
        {"p0", "p1", "p2", "p3", "p4"},
    ),
    "several targets of a source, further windows, two chips": (
        tangled,
        machine(10, 2),
        {"batch": 8, "capacity": 6, "gradient_capacity": 7, "placer": grouped(1)},
        {"p2", "p3", "p4"},
    ),
}


def dealt(name):
    make, target, options, some = CASES[name]
    return Windowed(make(np.random.default_rng(3)), target, dealt=some, **options)


@pytest.mark.parametrize("name", CASES)
def test_gradients_equal_those_of_the_reference(name):
    case = dealt(name)
    assert case.plan.dealt
    assert case.worst_error() <= 1e-5
    assert ("two chips" in name, "segments" in name) == (case.plan.chips_used == 2, case.plan.segment > 0)
    assert plan_from_json(plan_to_json(case.plan)) == case.plan


@pytest.mark.usefixtures("plans_as_for_users")
def test_no_worker_waits_for_the_samples_of_another_in_the_cycles_predicted():
    """One sample of six holds most spikes."""
    graph = deep(np.random.default_rng(3), (16, 24), inputs=400)
    options = {"batch": 6, "steps": 12, "placer": grouped(1, neurons=12)}
    first = Windowed(graph, machine(40), **options)
    inputs, target = first.data(0, density=0.02)
    inputs["x0"][:, 1] = np.random.default_rng(1).random(inputs["x0"][:, 1].shape) < 0.6
    seen = measure_activity(first.program, inputs, "the data")
    given = {"activity": seen.mean, "near": seen.near, "counts": seen.counts, "near_counts": seen.near_counts, "mode": "drop"}
    given["capacity"], given["gradient_capacity"] = 400, 24
    alone = Windowed(graph, machine(40), **options, **given).plan
    case = Windowed(graph, machine(40), **options, **given, dealt=("p0",))
    engine = case.open()
    engine.train_batch(inputs, target, 0.0)
    found = read_profile(case.plan, engine.profile()["emulator"])
    assert found is not None
    emulated = 0.0
    for name in ("backward: neurons ahead", "backward: neurons"):
        phase, cycles = next(p for p in case.plan.phases if p.name == name), sum(found.phases[name].values())
        assert phase.runs * phase.cycles == pytest.approx(cycles, rel=0.05), name
        emulated += cycles
    assert emulated < 0.6 * sum(p.runs * p.cycles for p in alone.phases if p.name == "backward: neurons")
    chosen = make_plan(first.program, machine(40), steps=12, batch=6, gradients="windowed", **given)
    assert chosen.cycles <= min(alone.cycles, case.plan.cycles)


def test_populations_that_read_more_than_spikes_over_dense_connections_are_refused():
    with pytest.raises(MappingOptionError, match="dealt names 'p1'"):
        Windowed(tangled(np.random.default_rng(3)), machine(40), dealt=("p1",))
