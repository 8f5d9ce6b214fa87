"""Machines with histories in half precision, compared with a reference that rounds at the same points."""

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pytest
from nets import of_model, recurrent
from poplar_projects import BATCH, STEPS, Project, machine, spiking, spiking_recurrent, workplace
from windowed_nets import deep

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import SLSTM, CubaLIF
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile

pytestmark = pytest.mark.usefixtures("codelets_as_for_users")

CASES = {
    "recurrent": (recurrent, machine(4), {}),
    "odd": (partial(spiking, hidden=37), machine(1), {"loss_output": "y"}),
    "synaptic": (lambda random: of_model(random, CubaLIF(0.7, 0.9)), machine(2), {}),
    "lstm": (lambda random: of_model(random, SLSTM(threshold=0.1)), machine(8), {}),
    "segments": (spiking_recurrent, machine(4), {"recompute": 5, "loss_output": "y"}),
    "streamed": (spiking_recurrent, machine(4), {"recompute": 5, "streaming": "history", "loss_output": "y"}),
    "fused": (deep, machine(4), {"fused": True, "gradients": "windowed", "loss_output": "y"}),
}


def dyadic(program):
    """The same with weights of few bits: every order of adding them gives the same sums."""
    rounded = {name: replace(p, value=(np.round(p.value * 64) / 64).astype(np.float32)) for name, p in program.parameters.items()}
    kept = {c.weight for c in program.connections} | {c.bias for c in program.connections}
    return replace(program, parameters=program.parameters | {name: p for name, p in rounded.items() if name in kept})


@lru_cache(maxsize=16)
def project(name, half=("history",)):
    make, target, given = CASES[name]
    options = {key: value for key, value in given.items() if key != "loss_output"}
    loss = parse_loss("ce_mean_membrane")
    graph = make(np.random.default_rng(3))
    program = dyadic(lower(graph, loss=loss, loss_output=given.get("loss_output"), optimizer=Adam(1e-2), steps=STEPS, half=half))
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, effort=0, **options)
    return Project(program, plan, emit_poplar(program, plan, workplace().path / f"half-{name}-{len(half)}"))


@pytest.mark.representative("streamed")
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_equal_those_of_the_reference_that_rounds_too(name):
    case = project(name)
    inputs, target = case.data()
    inputs = {key: np.round(x * 16) / 16 for key, x in inputs.items()}
    engine, reference = case.open(), case.reference()
    records, wanted = engine.forward(inputs, {}), reference.forward(inputs, {})
    for record in wanted:
        np.testing.assert_array_equal(records[record], wanted[record])
    assert engine.train_batch(inputs, target, 1e-2) == pytest.approx(reference.train_batch(inputs, target, 1e-2), rel=1e-6)
    for parameter, gradient in reference.gradients().items():
        error = np.linalg.norm(engine.gradients()[parameter] - gradient)
        assert error <= 2e-6 * max(1e-3, np.linalg.norm(gradient)), parameter


def test_the_cases_cover_what_they_name():
    assert project("segments").plan.segment == 5
    assert project("streamed").plan.streamed == "history"
    assert project("fused").plan.latency == 2
    assert any(b.count % 2 for p in project("odd").plan.populations for b in p.blocks)
    assert {len(p.kernel.saved) > 0 for p in project("lstm").program.populations} == {True, False}


def predicted_and_emulated(folder, half, steps=60):
    graph = spiking_recurrent(np.random.default_rng(3))
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(1e-2), steps=steps, half=half)
    random = np.random.default_rng(1)
    x = {"x0": (random.random((steps, BATCH, 40)) < 0.1).astype(np.float32)}
    seen = measure_activity(program, x, "the test's inputs")
    plan = make_plan(program, machine(4), steps=steps, batch=BATCH, effort=0, activity=seen.mean, counts=seen.counts)
    engine = open_engine(emit_poplar(program, plan, folder / "-".join(("project", *half))))
    engine.train_batch(x, random.integers(0, 4, BATCH), 0.0)
    return plan, engine.profile()["emulator"]


@pytest.mark.wide
def test_memory_and_cycles_are_predicted_within_five_per_cent(tmp_path):
    plan, emulated = predicted_and_emulated(tmp_path, ("history",))
    assert plan.cycles == pytest.approx(emulated["cycles_last_run"], rel=0.05)
    found = read_profile(plan, emulated)
    for phase in plan.phases:
        if phase.name.endswith("neurons"):
            assert phase.runs * phase.cycles == pytest.approx(sum(found.phases[phase.name].values()), rel=0.05), phase.name
    planned = np.sum([plan.memory[name] for name in plan.memory if name not in ("exchange", "vertices", "tables", "code")], axis=0)
    assert planned.sum() == pytest.approx(sum(emulated["per_tile"]["peak"]["variables"]), rel=0.05)
    whole, _ = predicted_and_emulated(tmp_path, ())
    assert sum(plan.memory["history"]) < 0.7 * sum(whole.memory["history"])
    assert plan.cycles < 1.03 * whole.cycles


@pytest.mark.parametrize("name", ["recurrent", "synaptic"])
def test_rounding_changes_gradients_a_little_and_records_not_at_all(name):
    rounded, exact = project(name).reference(), project(name, ()).reference()
    inputs, target = project(name).data()
    assert all((rounded.forward(inputs, {})[r] == record).all() for r, record in exact.forward(inputs, {}).items())
    _, found = rounded.loss_and_gradients(inputs, target)
    _, wanted = exact.loss_and_gradients(inputs, target)
    error = sum(float(np.square(found[p] - g).sum()) for p, g in wanted.items()) / sum(float(np.square(g).sum()) for g in wanted.values())
    assert 0 < error < (1e-3) ** 2
