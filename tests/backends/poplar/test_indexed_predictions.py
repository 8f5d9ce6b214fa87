"""Predicted cycles of indexed connections, compared with the emulator's."""

import numpy as np
import pytest
from indexed_nets import choosing, convolutional, sparse_recurrent
from poplar_projects import BATCH, Project, machine
from wide import sampled

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.blocks.grouping import neurons_per_tile
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.placement.placement import Placement
from snnc.driver.activity import measure_activity

STEPS = 60
"""Enough that the ends of the wavefront hardly count."""


@pytest.mark.wide
@pytest.mark.usefixtures("plans_as_for_users")
@pytest.mark.parametrize(
    ("make", "tiles"),
    sampled([(sparse_recurrent, 3), (sparse_recurrent, 60), (convolutional, 60), (convolutional, 3), (choosing, 3), (choosing, 60)], 2),
)
def test_cycles_are_predicted_within_five_percent(tmp_path, make, tiles):
    plan, profile = emulated(tmp_path, make, tiles, capacity=10**6)
    assert profile["cycles_last_run"] == pytest.approx(plan.cycles, rel=0.05)


def one_range(problem):
    """All samples on as many tiles as there are neurons in sixes."""
    ranges, first = [], 0
    for layer in problem.network.layers:
        width = -(-layer.neurons // 6)
        ranges.append(TileRange((first,), neurons_per_tile(layer.neurons, width), ((0, problem.batch),), 1))
        first += width
    yield Placement(tuple(ranges), 1)


@pytest.mark.parametrize("make", [convolutional, sparse_recurrent])
def test_windows_that_never_overflow_take_neurons_as_long_as_those_that_cannot(make):
    program, x = network(make)
    activity = measure_activity(program, x, "measured here")
    measured = {"activity": activity.mean, "rates": activity.rates, "counts": activity.counts}
    widest = max(int(counts.max()) for counts in activity.counts.values())
    limited, whole = (
        make_plan(program, machine(80), steps=STEPS, batch=BATCH, capacity=capacity, placer=one_range, **measured)
        for capacity in (widest, 10**6)
    )
    assert any(bus.capacity < bus.width for bus in limited.buses)
    for name in ("forward: neurons", "backward: neurons"):
        found, wanted = (next(p.compute for p in plan.phases if p.name == name) for plan in (limited, whole))
        assert found == pytest.approx(wanted, rel=1e-9)


def network(make):
    """A network that learns, and inputs."""
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(), steps=STEPS)
    return program, {"x0": (np.random.default_rng(1).random((STEPS, BATCH, *program.inputs[0].shape)) < 0.3).astype(np.float32)}


def emulated(tmp_path, make, tiles, capacity):
    """The plan and the profile of two equal steps."""
    program, x = network(make)
    activity = measure_activity(program, x, "measured here")
    measured = {"activity": activity.mean, "rates": activity.rates, "counts": activity.counts}
    plan = make_plan(program, machine(tiles), steps=STEPS, batch=BATCH, capacity=capacity, **measured)
    engine = Project(program, plan, emit_poplar(program, plan, tmp_path / "project")).open()
    engine.train_batch(x, np.arange(BATCH) % 4, 0.0)
    engine.train_batch(x, np.arange(BATCH) % 4, 0.0)
    return plan, engine.profile()["emulator"]
