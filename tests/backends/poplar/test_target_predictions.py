"""Targets other than classes: the predicted cost of the loss compared with the emulator's."""

import re

import composed_losses
import numpy as np
import pytest
from poplar_projects import machine

import snnc
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan
from snnc.report.profile import CODES, read_profile

STEPS, BATCH = 24, 10
LOSSES = (
    "mse_membrane:targets=step_values + 0.1*l1_rate:of=hidden",
    "ce_membrane:targets=step_classes,classes=4",
    "mse_last_membrane:targets=values,lengths",
)
CASES = [pytest.param(LOSSES[0], 24, 1), *(pytest.param(text, 8, 2, marks=pytest.mark.wide) for text in LOSSES)]


def trained(folder, text, tiles, chips):
    net = snnc.Network("net")
    spikes = net.input(60, kind="spikes")
    hidden = net.population(48, snnc.LIF(beta=0.9), name="hidden")
    readout = net.population(12, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, hidden, snnc.Dense(seed=0))
    net.connect(hidden, readout, snnc.Dense(seed=1))
    program = lower(net.graph(), loss=parse_loss(text), optimizer=SGD(1e-3), steps=STEPS)
    plan = make_plan(program, machine(tiles, chips), steps=STEPS, batch=BATCH)
    engine = open_engine(emit_poplar(program, plan, folder / "project"))
    random = np.random.default_rng(0)
    x = {"x0": (random.random((STEPS, BATCH, 60)) < 0.1).astype(np.float32)}
    engine.train_batch(x, composed_losses.targets_of(program, random, STEPS, BATCH), 0.0)
    found = engine.profile()["emulator"]
    engine.close()
    return plan, found


def moment_of(name, moments):
    """The moment of a plan that a program's step belongs to: the first whose pattern matches, as for its cycles."""
    return next((moment for moment, pattern in CODES.items() if moment in moments and re.match(pattern, name)), None)


@pytest.mark.parametrize(("text", "tiles", "chips"), CASES)
def test_bytes_cycles_and_memory_of_targets_are_those_of_the_emitted_program(tmp_path, text, tiles, chips):
    plan, emulated = trained(tmp_path, text, tiles, chips)
    assert plan.host_bytes == sum(step["bytes_host"] for step in emulated["steps"]) > 0
    found = read_profile(plan, emulated)
    phases = [phase for phase in plan.phases if phase.part == "loss"]
    assert {phase.name for phase in phases} >= {"loss: adjoints", "loss: sum"}
    for phase in phases:
        assert phase.runs * phase.cycles == pytest.approx(sum(found.phases[phase.name].values()), rel=0.05), phase.name
    points = emulated["memory_over_time"]
    step = {}
    for point in points:
        if point["program"] == points[-1]["program"] - 1:
            step.setdefault(moment_of(point["name"], {moment.name for moment in plan.memory_over_time}), point)
    compared = set()
    for moment in plan.memory_over_time:
        if point := step.get(moment.name):
            live = sum(size for name, size in moment.all_tiles.items() if name not in ("exchange", "vertices", "tables", "code"))
            # The plan counts for the sum what the step before it holds, targets included.
            most = {"loss: scores": 0.02, "loss: adjoints": 0.02, "loss: sum": 0.1}.get(moment.name, 0.05)
            assert live == pytest.approx(point["variables_of_all"], rel=most), moment.name
            if moment.part == "loss":
                assert moment.all_tiles["exchange"] == point["exchange_buffers_of_all"]
            compared.add(moment.name)
    assert compared >= {"forward: neurons", "loss: adjoints", "loss: sum", "backward: neurons"}
    assert max(plan.tile_memory) == pytest.approx(max(emulated["per_tile"]["peak"]["total"]), rel=0.05)
