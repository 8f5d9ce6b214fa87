"""Machines with a scaled loss: the reference's updates, skipped updates, and the costs."""

from dataclasses import replace

import numpy as np
import pytest
from nets import learnable, recurrent
from poplar_projects import BATCH, STEPS, Project, machine, spiking_recurrent

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan
from snnc.report.profile import read_profile

FIXED = LossScale(1024.0, dynamic=False)
GROWING = LossScale(2.0**127, interval=2, backoff=2.0**-4)
CASES = {
    "count": (recurrent, "ce_count", SGD(0.05, 0.9), machine(4)),
    "rate": (spiking_recurrent, "ce_rate", SGD(0.05), machine(4)),
    "maximum": (learnable, "ce_max_membrane", SGD(0.05, clip_norm=0.1), machine(2, 2)),
    "squares": (recurrent, "mse_count", Adam(1e-2, clip_value=0.02), machine(4)),
    "sums": (recurrent, "ce_mean_membrane:classes=2 + 0.5 * l2_membrane", SGD(0.05), machine(4)),
}


def made(folder, make, loss, optimizer, target):
    program = lower(make(np.random.default_rng(3)), loss=parse_loss(loss), loss_output="y", optimizer=optimizer, steps=STEPS)
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, effort=0)
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


@pytest.mark.wide
@pytest.mark.parametrize("name", CASES)
def test_a_factor_changes_no_update_and_no_loss(tmp_path, name):
    make, loss, optimizer, target = CASES[name]
    case = made(tmp_path, make, loss, replace(optimizer, loss_scale=FIXED), target)
    plain = replace(case.program, optimizer=optimizer)
    engine, reference = case.open(), replace(case, program=plain).reference()
    inputs, labels = case.data()
    labels = labels % 2 if name == "sums" else labels
    for _ in range(2):
        assert engine.train_batch(inputs, labels, 0.01) == pytest.approx(reference.train_batch(inputs, labels, 0.01), rel=1e-5)
        for parameter, gradient in reference.gradients().items():
            np.testing.assert_allclose(engine.gradients()[parameter], gradient, atol=1e-5 * max(1e-3, np.abs(gradient).max()))
        for parameter, value in reference.get_parameters().items():
            np.testing.assert_allclose(engine.get_parameters()[parameter], value, atol=1e-4, err_msg=parameter)
    assert engine.counters()["skipped_updates"] == 0
    assert engine.get_optimizer().loss_scale == (1024.0, 2)
    found = read_profile(case.plan, engine.profile()["emulator"])
    for phase in case.plan.phases:
        if phase.part in ("update", "loss"):
            predicted = phase.runs * (phase.compute + phase.sync + phase.exchange)
            assert predicted == pytest.approx(sum(found.phases[phase.name].values()), rel=0.1), phase.name


def trained(engine, parts, accumulate):
    return engine.train_parts(iter(parts), BATCH * len(parts), 0.01) if accumulate else engine.train_batch(*parts[0], 0.01)


@pytest.mark.representative("True")
@pytest.mark.parametrize("accumulate", [False, True])
def test_updates_are_skipped_and_the_factor_changes_as_on_the_reference(tmp_path, accumulate):
    optimizer = SGD(0.05, 0.9, loss_scale=GROWING, accumulate=accumulate)
    case = made(tmp_path, recurrent, "ce_rate", optimizer, machine(4))
    engine, reference, skipped = case.open(), case.reference(), []
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(8):
            inputs, labels = case.data(seed=step)
            inputs = {name: (step % 3 + 1) * 16 * x for name, x in inputs.items()}
            engine.set_parameters(reference.get_parameters())
            losses = [trained(e, [(inputs, labels)] * (1 + accumulate), accumulate) for e in (engine, reference)]
            assert losses[0] == pytest.approx(losses[1], rel=1e-5)
            assert engine.counters()["skipped_updates"] == reference.counters()["skipped_updates"]
            assert engine.get_optimizer().loss_scale == reference.get_optimizer().loss_scale
            assert engine.get_optimizer().updates == reference.get_optimizer().updates
            skipped.append(reference.counters()["skipped_updates"])
            for name, value in reference.get_parameters().items():
                np.testing.assert_allclose(engine.get_parameters()[name], value, atol=1e-4, err_msg=name)
    assert 0 < skipped[-1] < 8, "some updates are skipped, and some are made"
    kept = engine.get_optimizer()
    engine.set_optimizer(replace(kept, loss_scale=(8.0, 1)))
    assert engine.get_optimizer().loss_scale == (8.0, 1)
