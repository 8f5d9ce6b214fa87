"""Predicted cycles of indexed connections against those that the emulator counts."""

import numpy as np
import pytest
from indexed_nets import choosing, convolutional, sparse_recurrent
from poplar_projects import BATCH, Project, machine
from wide import sampled

from snnc.activity import measure_activity
from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.lower import lower
from snnc.compiler.mapping.mapper import make_plan
from snnc.compiler.optimizers import Adam

STEPS = 60
"""Enough that the ends of the wavefront hardly count."""


@pytest.mark.parametrize(
    ("make", "tiles"),
    sampled([(sparse_recurrent, 3), (sparse_recurrent, 60), (convolutional, 60), (convolutional, 3), (choosing, 3), (choosing, 60)], 2),
)
def test_cycles_are_predicted_within_five_percent(tmp_path, make, tiles):
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(), steps=STEPS)
    x = {"x0": (np.random.default_rng(1).random((STEPS, BATCH, *program.inputs[0].shape)) < 0.3).astype(np.float32)}
    activity = measure_activity(program, x, "measured here")
    measured = {"activity": activity.mean, "rates": activity.rates, "counts": activity.counts}
    plan = make_plan(program, machine(tiles), steps=STEPS, batch=BATCH, capacity=10**6, **measured)
    engine = Project(program, plan, emit_poplar(program, plan, tmp_path / "project")).open()
    engine.train_batch(x, np.arange(BATCH) % 4, 0.0)
    engine.train_batch(x, np.arange(BATCH) % 4, 0.0)
    profile = engine.profile()["emulator"]
    assert profile["cycles_last_run"] == pytest.approx(plan.cycles, rel=0.05)
