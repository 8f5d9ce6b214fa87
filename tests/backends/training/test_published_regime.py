"""The published sparse training, shortened, on every target: the same losses and the same dropped spikes."""

import numpy as np
import pytest
from limited_nets import strokes
from option_cells import MACHINES

import snnc

X, Y = (np.random.default_rng(0).random((16, 6, 24)) < 0.4).astype(np.float32), np.arange(16) % 4
CAPACITIES = {"fixed": None, "by share": "linear:40,15,updates=4 %", "by name": {"b": 2, "*": snnc.schedules.Linear(8, 3, updates=4)}}


def trained(target, policy, capacity):
    compiled = "40 %" if capacity != "by name" else 8
    options = {"loss": "ce_count", "optimizer": snnc.Adam(1e-3), "surrogate": "superspike", "steps": 6, "batch": 4, "seed": 5}
    with snnc.compile(strokes(), target, mode="drop", capacity=compiled, drop=policy, gradient_window=-100, **options) as session:
        window = snnc.schedules.Exponential(-100, -0.1)
        history = session.fit(X, Y, epochs=1, shuffle=False, gradient_window=window, capacity=CAPACITIES[capacity])
        session.run(X[:4].swapaxes(0, 1))
        return np.ravel(history.batch_losses), session.counters()["dropped_spikes"]


@pytest.fixture(scope="module")
def wanted():
    return {(policy, capacity): trained("reference", policy, capacity) for policy in ("lowest", "random") for capacity in CAPACITIES}


@pytest.mark.representative("cpu-*", "cuda-lowest-by name", "cuda-random-by share")
@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("policy", ["lowest", "random"])
@pytest.mark.parametrize("target", ["cpu", "cuda", "machine"])
def test_every_target_drops_the_same_spikes_and_has_the_same_losses(wanted, tmp_path, monkeypatch, target, policy, capacity):
    monkeypatch.setenv("SNNC_CUDA_ON_HOST", "1")
    (tmp_path / "small.toml").write_text(MACHINES["one.toml"])
    losses, dropped = trained(str(tmp_path / "small.toml") if target == "machine" else target, policy, capacity)
    right, number = wanted[policy, capacity]
    np.testing.assert_allclose(losses, right, rtol=1e-5)
    assert dropped == number > 100


def test_the_policies_and_capacities_of_the_comparison_differ(wanted):
    assert len({number for _, number in wanted.values()}) == len(wanted)
