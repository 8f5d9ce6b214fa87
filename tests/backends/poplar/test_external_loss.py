"""A program with a caller's loss keeps its histories, runs backward from a given adjoint, and returns gradients without an update."""

from functools import partial

import numpy as np
import pytest
from indexed_nets import sparse_recurrent
from nets import dense, feedback, learnable, recurrent
from poplar_projects import BATCH, STEPS, Project, machine, several_inputs, spiking_recurrent
from test_any_mapping import random_placement
from windowed_nets import deep

from snnc.backends.native.adjoint import with_input_gradients
from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan

CASES = {
    "recurrent": (recurrent, machine(4), {}),
    "learnable parameters on two chips": (learnable, machine(2, 2), {}),
    "replicas": (recurrent, machine(3, 5), {"chips": 5}),
    "further windows": (several_inputs, machine(3), {"capacity": 1}),
    "segments that run again": (feedback, machine(4), {"recompute": 5}),
    "indexed": (sparse_recurrent, machine(6), {}),
    "windows of gradients": (partial(deep), machine(100), {"gradients": "windowed", "quick": True}),
}


@pytest.fixture(autouse=True)
def _spoilt(monkeypatch):
    monkeypatch.setenv("SNNC_SPOIL_DEAD", "1")


def external(folder, make, target, relays=False, **options):
    graph, after = make(np.random.default_rng(3)), {}
    if relays:
        graph, after = with_input_gradients(graph)
    window = {"gradient_window": (-0.3, np.inf)} if "gradients" in options else {}
    program = lower(graph, loss=ExternalLoss(tuple(after.values())), loss_output="y", optimizer=SGD(0.0), steps=STEPS, **window)
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, **options)
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


def data(case, seed):
    """Inputs, and an adjoint of the output."""
    random = np.random.default_rng(seed)
    inputs = {}
    for info in case.program.inputs:
        x = (random.random((STEPS, BATCH, *info.shape)) < 0.4).astype(np.float32)
        inputs[info.id] = np.broadcast_to(x[:1], x.shape).copy() if info.static else x
    shape = next(o.shape for o in case.program.outputs if o.id == case.program.loss_output)
    return inputs, random.normal(size=(STEPS, BATCH, *shape)).astype(np.float32)


@pytest.mark.representative("segments that run again")
@pytest.mark.parametrize("name", CASES)
def test_gradients_from_a_given_adjoint_equal_those_of_the_reference(tmp_path, name):
    make, target, options = CASES[name]
    case = external(tmp_path, make, target, **options)
    engine, reference = case.open(), case.reference()
    before = engine.get_parameters()
    for seed in range(2):
        inputs, adjoint = data(case, seed)
        reference.train_batch(inputs, adjoint, 0.0)
        found = engine.forward(inputs, {})
        for id_, record in reference.forward(inputs, {}).items():
            np.testing.assert_allclose(found[id_], record, rtol=1e-4, atol=1e-5)
        engine.run_backward(adjoint)
        gradients, wanted = engine.gradients(), reference.gradients()
        assert gradients.keys() == wanted.keys()
        for parameter, gradient in gradients.items():
            assert np.linalg.norm(gradient - wanted[parameter]) <= 1e-4 * np.linalg.norm(wanted[parameter]), parameter
    for parameter, value in engine.get_parameters().items():
        np.testing.assert_array_equal(value, before[parameter])


@pytest.mark.wide
@pytest.mark.parametrize(
    ("make", "seed", "copies", "relays"), [(spiking_recurrent, 5, 5, False), (sparse_recurrent, 7, 1, False), (dense, 5, 5, True)]
)
def test_the_plan_predicts_sums_of_gradients_and_memory_without_loss_and_update(tmp_path, make, seed, copies, relays):
    machines = machine(110, 2) if copies == 1 else machine(40, copies)
    case = external(tmp_path, make, machines, relays, placer=random_placement(np.random.default_rng(seed), copies))
    inputs, adjoint = data(case, 1)
    engine = case.open()
    engine.forward(inputs, {})
    engine.run_backward(adjoint)
    profile = engine.profile()["emulator"]
    steps = {step["name"]: step for step in profile["steps"] if step["executions"]}
    assert not [name for name in steps if name.startswith("L")]
    assert "loss" not in {phase.part for phase in case.plan.phases}
    names = {"update: private gradients": "U1 private gradients", "update: optimiser": "U1 gradients"}
    for phase, step in names.items():
        found = next(p for p in case.plan.phases if p.name == phase)
        assert found.compute == pytest.approx(steps[step]["compute_cycles_busiest"] / steps[step]["executions"], rel=0.1)
    np.testing.assert_allclose(max(profile["per_tile"]["peak"]["total"]), max(case.plan.tile_memory), rtol=0.05)
    rate = case.plan.target.clock_hz / case.plan.target.host.bytes_per_second
    # Each of the streams takes whole cycles.
    assert 0 <= profile["host_cycles"] - case.plan.host_bytes * rate < 4
