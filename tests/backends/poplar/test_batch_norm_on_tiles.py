"""Batch normalisation trained by emitted Poplar programs: updates and running statistics are those of the reference."""

from functools import cache

import numpy as np
import pytest
from poplar_projects import BATCH, STEPS, Project, machine, workplace

import snnc
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.training.updates.normalising import NormalisingEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile

NORM = snnc.BatchNorm(gain=0.9, momentum=0.3, eps=1e-3)
OF_STEPS = snnc.BatchNorm(gain=0.9, momentum=0.3, eps=1e-3, each_step=True)


def dense(norm=NORM):
    """One normalised layer, with spikes as input."""
    net = snnc.Network("dense")
    spikes = net.input(12)
    hidden, y = net.population(9, snnc.LIF(beta=0.8)), net.population(3, snnc.LI(beta=0.9), name="li")
    net.connect(spikes, hidden, [snnc.Dense(9), norm])
    net.connect(hidden, y)
    return net.graph()


def convolutional(norm=NORM):
    """Two normalisations after one another, the first with channels."""
    layers = (snnc.Conv(3, 3), norm, snnc.LIF(beta=0.8), snnc.MaxPool(2), snnc.Dense(7), norm, snnc.LIF(beta=0.7, threshold=0.6))
    return snnc.Sequential((2, 6, 6), *layers, snnc.Dense(3), snnc.LI(beta=0.9), seed=2).graph()


CASES = {
    "dense": (dense, SGD(0.5), machine(4), {}),
    "dense, chips": (dense, SGD(0.5, 0.9), machine(3, 2), {"chips": 2}),
    "dense, replicas": (dense, SGD(0.5, 0.9), machine(3, 5), {"chips": 5}),
    "convolutions": (convolutional, SGD(0.5), machine(7), {}),
    "convolutions, clipped": (convolutional, SGD(0.5, clip_norm=0.1), machine(4), {}),
    "each step": (lambda: convolutional(OF_STEPS), SGD(0.5), machine(5), {}),
    "further windows": (dense, SGD(0.5), machine(4), {"capacity": 2}),
    "segments": (convolutional, SGD(0.5), machine(7), {"recompute": 4}),
    "accumulated": (convolutional, SGD(0.5, 0.9, accumulate=True), machine(7), {}),
    "replicas, accumulated, clipped": (dense, SGD(0.5, clip_norm=0.1, accumulate=True), machine(3, 5), {"chips": 5}),
    "each step, accumulated": (lambda: convolutional(OF_STEPS), SGD(0.5, accumulate=True), machine(5), {}),
    "segments, accumulated": (convolutional, SGD(0.5, accumulate=True), machine(7), {"recompute": 4}),
}


PREDICTED = (
    "dense",
    "dense, chips",
    "further windows",
    "convolutions",
    "each step",
    "segments",
    "accumulated",
    "replicas, accumulated, clipped",
)
REPRESENTATIVE = ("dense", "each step, accumulated")


@cache
def made(name):
    make, optimizer, target, options = CASES[name]
    program = lower(make(), loss=parse_loss("ce_mean_membrane"), loss_output="li", optimizer=optimizer, steps=STEPS)
    seen = measure_activity(program, inputs_of(program, 0), "the test's inputs")
    measured = {"activity": seen.mean, **seen.measured}
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, effort=0, **measured, **options)
    return Project(program, plan, emit_poplar(program, plan, workplace().path / f"normalised {name}"))


def inputs_of(program, seed):
    """Spikes for the input of the user; inputs for the statistics of each step are 0."""
    random = np.random.default_rng(seed)
    density = {i.id: 0.4 * (i.id == "x0") for i in program.inputs}
    return {i.id: (random.random((STEPS, BATCH, *i.shape)) < density[i.id]).astype(np.float32) for i in program.inputs}


def engines(case):
    return [NormalisingEngine(engine, case.program) for engine in (case.open(), case.reference())]


@pytest.mark.representative(*REPRESENTATIVE)
@pytest.mark.parametrize("name", CASES)
def test_updates_and_running_statistics_are_those_of_the_reference(name):
    case = made(name)
    assert (case.plan.segment > 0) == name.startswith("segments")
    engine, reference = engines(case)
    first, updates = engine.get_parameters(), 20 if name == "dense" else 3
    for update in range(updates):
        several = 3 if "accumulated" in name else 1
        parts = [({"x0": inputs_of(case.program, 10 * update + k)["x0"]}, (np.arange(BATCH) + k) % 3) for k in range(several)]
        inputs = parts[-1][0]
        losses = [e.train_parts(iter(parts), several * BATCH, 0.05) for e in (engine, reference)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    found, wanted = engine.get_parameters(), reference.get_parameters()
    for parameter, value in wanted.items():
        np.testing.assert_allclose(found[parameter], value, rtol=1e-4, atol=1e-5, err_msg=case.program.parameters[parameter].label)
    running = [p.name for p in case.program.parameters.values() if p.label.endswith(("statistics.mean", "statistics.var"))]
    assert all((found[name] != first[name]).any() for name in running)
    records = [e.forward(inputs, {}) for e in (engine, reference)]
    for output, value in records[1].items():
        np.testing.assert_allclose(records[0][output], value, rtol=1e-4, atol=1e-5)


def test_the_variance_of_values_far_from_zero_keeps_its_digits():
    case = made("dense")
    bias = next(p.name for p in case.program.parameters.values() if p.label.endswith("dense.bias"))
    found = []
    for engine in engines(case):
        engine.set_parameters({bias: np.full(9, 100, np.float32)})
        engine.train_batch({"x0": inputs_of(case.program, 0)["x0"]}, np.arange(BATCH) % 3, 0.05)
        found.append({case.program.parameters[name].label: value for name, value in engine.get_parameters().items()})
    for name in ("input_to_lif_batchnorm_statistics.mean", "input_to_lif_batchnorm_statistics.var"):
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-4, err_msg=name)


@pytest.mark.wide
def test_a_run_returns_no_values_of_normalised_layers():
    case = made("dense")
    engine = case.open()
    records, moments = engine.measure(inputs_of(case.program, 0), {})
    assert list(records) == [case.program.loss_output]
    (values,) = (v for o, v in case.reference().forward(inputs_of(case.program, 0), {}).items() if o in moments)
    (found,) = moments.values()
    np.testing.assert_allclose(found.mean, values.mean((0, 1)), atol=1e-6)
    np.testing.assert_allclose(found.squares, np.square(values - values.mean((0, 1))).sum((0, 1)), rtol=1e-5)
    assert found.count == STEPS * BATCH


@pytest.mark.wide
@pytest.mark.usefixtures("codelets_as_for_users")
@pytest.mark.parametrize("name", PREDICTED)
def test_an_update_with_all_its_passes_is_predicted(name):
    """Cycles of all runs of an update within 5 %, the fullest tile's bytes within 1 %."""
    case = made(name)
    engine = engines(case)[0]
    engine.train_batch({"x0": inputs_of(case.program, 0)["x0"]}, np.arange(BATCH) % 3, 0.05)
    emulated = engine.profile()["emulator"]
    assert case.plan.cycles == pytest.approx(emulated["cycles"], rel=0.05)
    found = read_profile(case.plan, emulated)
    for phase in case.plan.phases:
        if phase.name in ("forward: moments", "update: gradients") or phase.name.endswith(("source gradients", ": neurons")):
            counted = sum(found.phases[phase.name].values())
            assert phase.runs * phase.cycles == pytest.approx(counted, rel=0.1 if "update" in phase.name else 0.05), phase.name
    planned = np.sum(list(case.plan.memory.values()), axis=0).max()
    assert planned == pytest.approx(max(emulated["per_tile"]["peak"]["total"]), rel=0.01)


@pytest.mark.representative("each step, accumulated")
@pytest.mark.parametrize("name", ["accumulated", "each step, accumulated"])
def test_an_interrupted_update_forgets_its_gradients(name):
    case = made(name)
    engine, reference = engines(case)
    inputs, target = {"x0": inputs_of(case.program, 3)["x0"]}, np.arange(BATCH) % 3

    def broken():
        yield inputs, (target + 1) % 3
        raise InterruptedError

    for each in (engine, reference):
        start = each.get_parameters()
        with pytest.raises(InterruptedError):
            each.train_parts(broken(), 2 * BATCH, 0.05)
        each.set_parameters(start)
        each.train_parts([(inputs, target)] * 2, 2 * BATCH, 0.05)
    found, wanted = engine.get_parameters(), reference.get_parameters()
    reference.set_parameters(start)
    reference.engine._optimizer = type(reference.engine._optimizer)(case.program.optimizer)
    reference.train_batch(inputs, target, 0.05)
    for parameter, value in reference.get_parameters().items():
        label = case.program.parameters[parameter].label
        if not label.endswith(("statistics.mean", "statistics.var")):
            np.testing.assert_allclose(wanted[parameter], value, rtol=1e-4, atol=1e-5, err_msg=label)
            np.testing.assert_allclose(found[parameter], value, rtol=1e-4, atol=1e-5, err_msg=label)
