"""Training with float16 weights: the reference's updates, half the memory, predictions."""

from functools import partial

import numpy as np
import pytest
from nets import recurrent
from poplar_projects import BATCH, STEPS, Project, machine, spiking, spiking_recurrent
from windowed_nets import deep

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.losses.weight_rounding import REMAINDER, WeightRounding, nearest
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile

CASES = {
    "stochastic": (spiking_recurrent, SGD(0.05), machine(4), {}, "stochastic"),
    "odd": (partial(spiking, hidden=37), SGD(0.05, 0.9), machine(1), {}, "stochastic"),
    "replicas": (recurrent, SGD(0.05), machine(3, 5), {"chips": 5}, "stochastic"),
    "windowed": (deep, SGD(0.05), machine(4), {"gradients": "windowed"}, "nearest"),
    "clipped": (recurrent, SGD(0.05, clip_norm=0.1), machine(4), {}, "master"),
}


def made(folder, make, optimizer, target, options, kind, half=("weights",), steps=STEPS):
    program = lower(
        make(np.random.default_rng(3)),
        loss=parse_loss("ce_mean_membrane"),
        loss_output="y",
        optimizer=optimizer,
        steps=steps,
        half=half,
        rounding=WeightRounding(kind, 5),
    )
    plan = make_plan(program, target, steps=steps, batch=BATCH, effort=0, **options)
    return Project(program, plan, emit_poplar(program, plan, folder / "-".join(("project", *half))))


@pytest.mark.wide
@pytest.mark.parametrize("name", CASES)
def test_updates_equal_those_of_the_reference(tmp_path, name):
    """A float32 update may differ in its last bit; it then may go to the other neighbour, which is rare."""
    case = made(tmp_path, *CASES[name])
    engine, reference = case.open(), case.reference()
    halves = [p.name for p in case.program.parameters.values() if p.half]
    assert halves
    differ = size = 0
    for update in range(3):
        inputs, target = case.data(seed=update)
        losses = [e.train_batch(inputs, target, 0.05) for e in (engine, reference)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)
        found, wanted = engine.get_parameters(), reference.get_parameters()
        for parameter in wanted:
            if parameter in halves:
                np.testing.assert_array_equal(found[parameter], nearest(found[parameter]))
                differ += int((found[parameter] != wanted[parameter]).sum())
                size += wanted[parameter].size
            np.testing.assert_allclose(found[parameter], wanted[parameter], rtol=2**-9, atol=1e-5, err_msg=parameter)
        reference.set_optimizer(engine.get_optimizer())
        for parameter, value in found.items():
            reference._parameters[parameter][...] = value
    assert differ <= 1e-3 * size


def test_a_remainder_makes_of_rounded_weights_those_of_float32(tmp_path):
    case = made(tmp_path, recurrent, Adam(1e-3), machine(4), {}, "master")
    engine, whole = case.open(), made(tmp_path, recurrent, Adam(1e-3), machine(4), {}, "master", half=()).reference()
    whole.set_parameters(case.reference().get_parameters())
    inputs, target = case.data()
    for _ in range(2):
        engine.train_batch(inputs, target, 1e-3)
        whole.train_batch(inputs, target, 1e-3)
    rest = engine.get_optimizer().moments[REMAINDER]
    assert set(rest) == {p.name for p in case.program.parameters.values() if p.half}
    weights, wanted = engine.get_parameters(), whole.get_parameters()
    for name, remainder in rest.items():
        assert 0 < np.abs(remainder).max() <= 2**-11 * np.abs(weights[name]).max()
        # Gradients differ by what rounded weights change; Adam's step is 1e-3 at most.
        assert np.abs(weights[name] + remainder - wanted[name]).mean() < 2e-5
    engine.set_parameters(weights)
    assert not any(r.any() for r in engine.get_optimizer().moments[REMAINDER].values())


def planned_and_emulated(folder, kind, half):
    graph = spiking_recurrent(np.random.default_rng(3))
    options = {"loss": parse_loss("ce_mean_membrane"), "loss_output": "y", "optimizer": Adam(1e-2), "steps": 30}
    program = lower(graph, half=half, rounding=WeightRounding(kind), **options)
    random = np.random.default_rng(1)
    x = {"x0": (random.random((30, BATCH, 40)) < 0.1).astype(np.float32)}
    seen = measure_activity(program, x, "the test's inputs")
    plan = make_plan(program, machine(4), steps=30, batch=BATCH, effort=0, activity=seen.mean, counts=seen.counts)
    engine = open_engine(emit_poplar(program, plan, folder / "-".join(("project", kind, *half))))
    engine.train_batch(x, random.integers(0, 4, BATCH), 1e-3)
    return plan, engine.profile()["emulator"]


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["stochastic", "master"])
def test_memory_and_cycles_are_predicted_within_five_per_cent(tmp_path, kind):
    plan, emulated = planned_and_emulated(tmp_path, kind, ("weights",))
    assert plan.cycles == pytest.approx(emulated["cycles_last_run"], rel=0.05)
    found = read_profile(plan, emulated)
    for phase in plan.phases:
        if phase.part == "update" or phase.name.endswith("source gradients"):
            predicted = phase.runs * (phase.compute + phase.sync + phase.exchange)
            assert predicted == pytest.approx(sum(found.phases[phase.name].values()), rel=0.05), phase.name
    planned = np.sum([plan.memory[name] for name in plan.memory if name not in ("exchange", "vertices", "tables", "code")], axis=0)
    assert planned.sum() == pytest.approx(sum(emulated["per_tile"]["peak"]["variables"]), rel=0.05)
    whole, _ = planned_and_emulated(tmp_path, kind, ())
    assert sum(plan.memory["weights"]) < 0.55 * sum(whole.memory["weights"])
