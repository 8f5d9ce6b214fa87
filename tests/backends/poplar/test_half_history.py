"""Machines with histories in half precision, compared with a reference that rounds at the same points."""

import numpy as np
import pytest
from half_projects import CASES, predicted_and_emulated, project

from snnc.report.profile import read_profile


@pytest.mark.wide
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


@pytest.mark.wide
def test_the_cases_cover_what_they_name():
    assert project("segments").plan.segment == 5
    assert project("streamed").plan.streamed == "history"
    assert project("fused").plan.latency == 2
    assert any(b.count % 2 for p in project("odd").plan.populations for b in p.blocks)
    assert {len(p.kernel.saved) > 0 for p in project("lstm").program.populations} == {True, False}


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


@pytest.mark.representative("recurrent")
@pytest.mark.parametrize("name", ["recurrent", "synaptic"])
def test_rounding_changes_gradients_a_little_and_records_not_at_all(name):
    rounded, exact = project(name).reference(), project(name, ()).reference()
    inputs, target = project(name).data()
    assert all((rounded.forward(inputs, {})[r] == record).all() for r, record in exact.forward(inputs, {}).items())
    _, found = rounded.loss_and_gradients(inputs, target)
    _, wanted = exact.loss_and_gradients(inputs, target)
    error = sum(float(np.square(found[p] - g).sum()) for p, g in wanted.items()) / sum(float(np.square(g).sum()) for g in wanted.values())
    assert 0 < error < (1e-3) ** 2
