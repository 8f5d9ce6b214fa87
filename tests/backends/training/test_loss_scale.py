"""Scaled losses: skipped updates, the factor compared with torch.amp.GradScaler, and unchanged results."""

from dataclasses import replace

import cpu_projects
import cuda_projects
import numpy as np
import pytest
from cpu_projects import data, parts_of
from frameworks import torch
from nets import recurrent

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.session import BackendSession
from snnc.compiler.errors import SnncError
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.loss_scale import LossScale, ScaleState
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower

DYNAMIC = LossScale(2.0**100, interval=2)
"""A factor so large that gradients overflow first."""
BASE = {
    "sgd": SGD(0.05, 0.9),
    "adam, both clips": Adam(1e-2, clip_value=0.02, clip_norm=0.05),
}


def program_of(optimizer, loss="ce_mean_membrane"):
    return lower(recurrent(np.random.default_rng(3)), loss=parse_loss(loss), optimizer=optimizer, loss_output="y")


def opened_on(target, program):
    return {"cpu": cpu_projects.opened, "cuda": cuda_projects.opened}[target](program)


def test_the_factor_follows_torchs_rule():
    rule = LossScale(1024.0, growth=3.0, interval=3, backoff=0.25)
    ours, weight = ScaleState(rule.factor), torch.zeros(1, requires_grad=True)
    theirs = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=3)
    optimizer, random, skipped = torch.optim.SGD([weight], lr=1.0), np.random.default_rng(0), 0
    for finite in random.random(60) < 0.8:
        weight.grad = None
        before = weight.item()
        theirs.scale(weight.sum() * (1.0 if finite else float("inf"))).backward()
        theirs.step(optimizer)
        theirs.update()
        ours.count(rule, finite=bool(finite))
        skipped += weight.item() == before
        assert ours.factor == theirs.get_scale()
    assert ours.skipped == skipped > 5


@pytest.mark.parametrize("base", BASE)
@pytest.mark.parametrize("loss", ["ce_mean_membrane", "ce_rate"])
def test_a_factor_changes_no_update_and_no_loss(base, loss):
    plain, scaled = (program_of(o, loss) for o in (BASE[base], replace(BASE[base], loss_scale=LossScale(1024.0, dynamic=False))))
    first, second = ReferenceEngine(plain), ReferenceEngine(scaled)
    for step in range(4):
        batch = data(plain, seed=step)
        assert first.train_batch(*batch, 0.05) == second.train_batch(*batch, 0.05)
        for name, gradient in first.gradients().items():
            np.testing.assert_array_equal(second.gradients()[name], gradient)
    for name, value in first.get_parameters().items():
        np.testing.assert_array_equal(second.get_parameters()[name], value)
    assert second.counters()["skipped_updates"] == 0


@pytest.mark.representative("sgd-cpu")
@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("base", ["sgd", pytest.param("adam, both clips", marks=pytest.mark.wide)])
def test_targets_skip_and_update_as_the_reference(target, base):
    loss = "ce_rate" if base == "sgd" else "ce_mean_membrane"
    program = program_of(replace(BASE[base], loss_scale=LossScale(2.0**127, interval=2, backoff=2.0**-4)), loss)
    reference = ReferenceEngine(program)
    with opened_on(target, program) as engine, np.errstate(over="ignore", invalid="ignore"):
        skipped = []
        for step in range(8):
            inputs, labels = data(program, seed=step)
            batch = {name: (step % 3 + 1) * 16 * x for name, x in inputs.items()}, labels
            # From the same start: the updates are compared, not what rounding becomes over several of them.
            engine.set_parameters(reference.get_parameters())
            assert engine.train_batch(*batch, 0.01) == pytest.approx(reference.train_batch(*batch, 0.01), rel=1e-5)
            assert engine.counters()["skipped_updates"] == reference.counters()["skipped_updates"]
            assert engine.get_optimizer().loss_scale == reference.get_optimizer().loss_scale
            assert engine.get_optimizer().updates == reference.get_optimizer().updates
            skipped.append(reference.counters()["skipped_updates"])
            for name, value in reference.get_parameters().items():
                np.testing.assert_allclose(engine.get_parameters()[name], value, atol=1e-4, err_msg=name)
        assert 0 < skipped[-1] < 8, "some updates are skipped, and some are made"
        for name, gradient in reference.gradients().items():
            if np.isfinite(gradient).all():
                np.testing.assert_allclose(engine.gradients()[name], gradient, atol=1e-4 * np.abs(gradient).max(), err_msg=name)
        inputs, labels = data(program, seed=9)
        parts = parts_of(inputs, labels, 3)
        engine.train_parts(iter(parts), len(labels), 0.01)
        reference.train_parts(iter(parts), len(labels), 0.01)
        assert engine.get_optimizer().loss_scale == reference.get_optimizer().loss_scale


@pytest.mark.wide
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_factor_changes_nothing_of_a_sum_of_losses_over_populations_of_neurons(target):
    loss = "ce_mean_membrane:classes=2 + 0.5 * l2_membrane"
    plain, scaled = (program_of(o, loss) for o in (BASE["sgd"], replace(BASE["sgd"], loss_scale=LossScale(1024.0, dynamic=False))))
    reference, (inputs, _) = ReferenceEngine(plain), data(plain)
    labels = np.arange(next(iter(inputs.values())).shape[1]) % 2
    with opened_on(target, scaled) as engine:
        assert engine.train_batch(inputs, labels, 0.05) == pytest.approx(reference.train_batch(inputs, labels, 0.05), rel=1e-5)
        for name, gradient in reference.gradients().items():
            np.testing.assert_allclose(engine.gradients()[name], gradient, rtol=0, atol=1e-5 * np.abs(gradient).max(), err_msg=name)


def test_a_number_for_a_loss_scale_is_refused_with_what_to_give():
    with pytest.raises(SnncError, match=r"LossScale\(8.0\)"):
        snnc.compile(snnc.Sequential(4, snnc.Dense(2), snnc.LI()), loss="ce_mean_membrane", optimizer=snnc.SGD(0.1, loss_scale=8.0))


def test_a_fixed_factor_that_overflows_skips_every_update():
    program = program_of(SGD(0.05, loss_scale=LossScale(3e38, dynamic=False)))
    engine = ReferenceEngine(program)
    start = engine.get_parameters()
    inputs, labels = data(program)
    x = {info.label: np.moveaxis(inputs[info.id], 1, 0) for info in program.inputs}
    with np.errstate(over="ignore", invalid="ignore"):
        history = BackendSession(engine, program).fit(x, labels, epochs=3, batch=len(labels))
    assert history.skipped_updates == 3
    assert "3 updates were skipped" in history.note
    assert engine.get_optimizer().updates == 0
    for name, value in engine.get_parameters().items():
        np.testing.assert_array_equal(value, start[name])


def test_the_factor_is_saved_with_the_optimizer(tmp_path):
    program = program_of(Adam(1e-2, loss_scale=DYNAMIC))
    inputs, labels = data(program)
    x = {info.label: np.moveaxis(inputs[info.id], 1, 0) for info in program.inputs}
    with np.errstate(over="ignore", invalid="ignore"):
        session = BackendSession(ReferenceEngine(program), program)
        session.fit(x, labels, epochs=5, batch=len(labels))
        session.save(tmp_path / "kept.safetensors", optimizer=True)
        again = BackendSession(ReferenceEngine(program), program)
        again.load(tmp_path / "kept.safetensors", optimizer=True)
        assert again.engine.get_optimizer().loss_scale == session.engine.get_optimizer().loss_scale != (DYNAMIC.factor, 0)
        for one in (session, again):
            one.fit(x, labels, epochs=3, first_epoch=5, batch=len(labels))
    for name, value in session.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name], value)


@pytest.mark.wide
def test_deltas_of_16_bits_are_scaled_too():
    plain, scaled = (program_of(o) for o in (BASE["sgd"], replace(BASE["sgd"], loss_scale=LossScale(2.0**20, dynamic=False))))
    batch = data(plain)
    with cuda_projects.opened(plain, precision="float16") as first, cuda_projects.opened(scaled, precision="float16") as second:
        assert first.train_batch(*batch, 0.05) == second.train_batch(*batch, 0.05)
        for name, gradient in first.gradients().items():
            np.testing.assert_allclose(second.gradients()[name], gradient, rtol=1e-6, atol=1e-12, err_msg=name)
        for name, value in first.get_parameters().items():
            np.testing.assert_allclose(second.get_parameters()[name], value, rtol=1e-6, err_msg=name)


def test_a_package_for_poptorch_refuses_a_factor():
    with pytest.raises(SnncError, match="loss_scale") as raised:
        snnc.compile(recurrent(np.random.default_rng(3)), target="poptorch", steps=9, loss="ce_count", optimizer="adam:loss_scale=dynamic")
    assert raised.value.code == "SNNC-E430"
