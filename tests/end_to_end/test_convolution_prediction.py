"""A plan's predictions for a small convolutional net compared with the emulator, for spikes clustered as in images."""

from __future__ import annotations

import numpy as np
import pytest

import snnc
from snnc.report.profile import read_profile

STEPS, BATCH = 5, 4
ALL = 4 * 12 * 12
"""Spikes that each list of the network `averaged` has room for, so that no step needs further windows."""
SMALL = 'extends = "gc200"\nname = "small"\ntiles_per_chip = 24\n'


def strided() -> snnc.Network:
    return snnc.Sequential(
        (2, 10, 10),
        snnc.Conv(6, 3, stride=2, padding=1),
        snnc.LIF(beta=0.9),
        snnc.Conv(6, 2, groups=3),
        snnc.LIF(beta=0.8),
        snnc.Dense(10),
        snnc.LI(beta=0.9),
        seed=1,
    )


def averaged() -> snnc.Network:
    return snnc.Sequential((1, 16, 16), snnc.Conv(4, 5), snnc.LIF(beta=0.9), snnc.AvgPool(3), snnc.Dense(10), snnc.LI(beta=0.9), seed=1)


def maximal() -> snnc.Network:
    return snnc.Sequential(
        (1, 10, 10),
        snnc.Conv(4, 3, padding=1),
        snnc.LIF(beta=0.9),
        snnc.MaxPool(2),
        snnc.Conv(8, 3),
        snnc.LIF(beta=0.8),
        snnc.Dense(10),
        snnc.LI(beta=0.9),
        seed=1,
    )


def images(channels: int, size: int) -> np.ndarray:
    """[steps, samples, channels, rows, columns]: spikes around a place of each sample."""
    random = np.random.default_rng(0)
    rows, columns = np.mgrid[:size, :size]
    row, column = random.uniform(1, size - 1, (2, BATCH, 1, 1, 1))
    rate = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * (size / 6) ** 2))
    return (random.random((STEPS, BATCH, channels, size, size)) < rate).astype(np.float32)


@pytest.mark.representative(f"averaged-*-{ALL}-*")
@pytest.mark.parametrize(
    ("make", "shape", "capacity", "trained"),
    [(averaged, (1, 16), ALL, True), (averaged, (1, 16), None, True), (strided, (2, 10), 8, True), (maximal, (1, 10), 8, False)],
)
def test_cycles_of_small_convolutional_nets_are_predicted_within_five_per_cent(tmp_path, make, shape, capacity, trained):
    machine = tmp_path / "small.toml"
    machine.write_text(SMALL, encoding="utf-8")
    x = images(*shape)
    learns = {"loss": "ce_mean_membrane", "optimizer": "adam"} if trained else {}
    calibrated = {"calibrate": {"input": x}, "capacity": capacity}
    with snnc.compile(make(), str(machine), steps=STEPS, batch=BATCH, output=tmp_path / "project", **calibrated, **learns) as session:
        if trained:
            session.engine.train_batch({session.program.inputs[0].id: x}, np.arange(BATCH), 0.0)
        else:
            session.run(x)
        cycles, found = session.cycles(), read_profile(session.plan, session.profile())
    assert cycles["counted"] == pytest.approx(cycles["predicted"], rel=0.05)
    of = {phase.name: phase.runs * phase.cycles for phase in session.plan.phases}
    for name, kinds in found.phases.items():
        assert sum(kinds.values()) == pytest.approx(of[name], rel=0.05, abs=0.01 * cycles["counted"]), name
    windows = of.get("forward: further windows", 0)
    assert (windows > 0) == (capacity not in (None, ALL))
