"""Machines with float16 states, compared with a reference that rounds them at the same points."""

import numpy as np
import pytest
from half_projects import CASES, dyadic, predicted_and_emulated, project
from poplar_projects import BATCH, STEPS, Project, machine, spiking

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.runtime.initial import initial_states
from snnc.compiler.losses.weight_rounding import nearest
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile

STATES, BOTH = ("states",), ("states", "history")


def exact(inputs):
    """The same with values of few bits."""
    return {key: np.round(x * 16) / 16 for key, x in inputs.items()}


def check_update(engine, reference, inputs, target):
    assert engine.train_batch(inputs, target, 1e-2) == pytest.approx(reference.train_batch(inputs, target, 1e-2), rel=1e-6)
    found = engine.gradients()
    for parameter, gradient in reference.gradients().items():
        assert np.linalg.norm(found[parameter] - gradient) <= 2e-6 * max(1e-3, np.linalg.norm(gradient)), parameter


@pytest.mark.representative("streamed-half1")
@pytest.mark.parametrize("half", [STATES, BOTH])
@pytest.mark.parametrize("name", CASES)
def test_records_loss_and_gradients_equal_those_of_the_reference(name, half):
    case = project(name, half)
    inputs, target = case.data()
    inputs = exact(inputs)
    engine, reference, unrounded = case.open(), case.reference(), project(name, ()).reference()
    records, wanted, others = (e.forward(inputs, {}) for e in (engine, reference, unrounded))
    for record in wanted:
        np.testing.assert_array_equal(records[record], wanted[record])
    assert any((others[record] != wanted[record]).any() for record in wanted)
    check_update(engine, reference, inputs, target)


@pytest.mark.wide
def test_twenty_updates_equal_those_of_the_reference():
    """Weights are multiples of 2^-12 after each update, so that every order of adding them gives the same sums."""
    case = project("odd", STATES)
    engine, reference = case.open(), case.reference()
    for update in range(20):
        check_update(engine, reference, *case.data(seed=update))
        given = {name: np.round(value * 4096) / 4096 for name, value in engine.get_parameters().items()}
        reference.set_optimizer(engine.get_optimizer())
        for one in (engine, reference):
            one.set_parameters(given)


def measured(program, inputs):
    seen = measure_activity(program, inputs, "the test's inputs")
    return {"activity": seen.mean, "counts": seen.counts}


def inference(folder, half, inputs=None):
    program = dyadic(lower(spiking(np.random.default_rng(3), hidden=37), steps=STEPS, half=half))
    seen = {} if inputs is None else measured(program, inputs)
    plan = make_plan(program, machine(2), steps=STEPS, batch=BATCH, effort=0, **seen)
    return Project(program, plan, emit_poplar(program, plan, folder / ("half" if half else "float")))


def test_a_run_begins_with_rounded_states_and_stores_half_the_bytes(tmp_path):
    case, wide = (inference(tmp_path, half) for half in (STATES, ()))
    inputs, _ = case.data()
    random = np.random.default_rng(5)
    given = {f"{p.label}.{p.kernel.labels['s0']}": random.normal(size=(BATCH, *p.shape)) for p in case.program.populations}
    initial = initial_states(case.program, given, BATCH)
    assert all((nearest(value) == value).all() for value in initial.values())
    engine, reference = case.open(), case.reference()
    records, wanted = engine.forward(inputs, initial), reference.forward(inputs, initial)
    without = reference.forward(inputs, {})
    for record in wanted:
        np.testing.assert_array_equal(records[record], wanted[record])
        assert (without[record] != wanted[record]).any()
    name = f"{case.program.populations[0].id}_s0_initial"
    engine.session.set(name, np.full((BATCH, 37), 0.1, np.float32))
    np.testing.assert_array_equal(engine.session.get(name), nearest(np.full((BATCH, 37), 0.1)))
    # Rows of 37 neurons, divided among workers, are padded; masks, currents and sent values have the same size.
    neurons = sum(int(np.prod(p.shape)) for p in case.program.populations)
    saved = sum(wide.plan.memory["history"]) - sum(case.plan.memory["history"])
    assert 0.6 * 4 * neurons * BATCH < saved <= 4 * neurons * BATCH


@pytest.mark.parametrize("options", [{}, {"recompute": 10}, {"recompute": 10, "streaming": "boundaries"}])
@pytest.mark.wide
def test_memory_and_cycles_are_those_of_the_emulator(tmp_path, options):
    plan, emulated = predicted_and_emulated(tmp_path, STATES, **options)
    assert plan.cycles == pytest.approx(emulated["cycles_last_run"], rel=0.05)
    found = read_profile(plan, emulated)
    for phase in plan.phases:
        if phase.name.endswith(("neurons", "initial states")):
            assert phase.runs * phase.cycles == pytest.approx(sum(found.phases[phase.name].values()), rel=0.05), phase.name
    planned = np.sum([plan.memory[name] for name in plan.memory if name not in ("exchange", "vertices", "tables", "code")], axis=0)
    assert planned.sum() == pytest.approx(sum(emulated["per_tile"]["peak"]["variables"]), rel=0.01)
    wide, _ = predicted_and_emulated(tmp_path, (), **options)
    assert sum(plan.memory["history"]) < 0.75 * sum(wide.memory["history"])
    assert plan.cycles < 1.03 * wide.cycles


def test_cycles_of_a_run_are_those_of_the_emulator(tmp_path):
    inputs = {"x0": (np.random.default_rng(1).random((STEPS, BATCH, 40)) < 0.1).astype(np.float32)}
    case = inference(tmp_path, STATES, inputs)
    engine = case.open()
    engine.forward(inputs, {})
    emulated = engine.profile()["emulator"]
    phases = {p.name: p.runs * p.cycles for p in case.plan.phases}
    found = read_profile(case.plan, emulated).phases
    for name in ("forward: initial states", "forward: neurons"):
        assert phases[name] == pytest.approx(sum(found[name].values()), rel=0.05), name
