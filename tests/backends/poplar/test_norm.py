"""Gradients clipped by their norm over all tiles and chips: updates, predicted cycles and memory."""

import numpy as np
import pytest
from indexed_nets import sparse_recurrent
from nets import learnable, recurrent
from poplar_projects import BATCH, EFFORT, STEPS, Project, machine, several_inputs, spiking_recurrent
from wide import examples

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam, Group
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles import make_plan

CASES = {
    "tiles": (recurrent, SGD(0.05, 0.9, clip_norm=0.05), machine(4), None),
    "replicas": (recurrent, SGD(0.05, 0.9, clip_norm=0.05), machine(3, 5), 5),
    "tables": (sparse_recurrent, SGD(0.05, 0.9, clip_norm=0.05), machine(4), None),
    "chips": (learnable, Adam(1e-2, clip_norm=0.05, clip_value=0.1), machine(2, 2), None),
    "inputs": (several_inputs, SGD(0.05, 0.9, clip_norm=0.05, groups=(Group("first.*", frozen=True),)), machine(3), None),
    "accumulated": (recurrent, SGD(0.05, 0.9, clip_norm=0.05, clip_value=0.1, accumulate=True), machine(4), None),
    "accumulated chips": (sparse_recurrent, SGD(0.05, clip_norm=0.05, accumulate=True), machine(3, 2), 2),
}
STEPS_OF_THE_NORM = {"update: squares": "U1 squares", "update: norm of tiles": "U1 norm of tiles", "update: norm": "U1 norm"}
PARTS = 2


def planned(make, optimizer, target, chips=None):
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=optimizer, loss_output="y", steps=STEPS)
    return program, make_plan(program, target, steps=STEPS, batch=BATCH, effort=examples(0, EFFORT), chips=chips)


def made(folder, *case):
    program, plan = planned(*case)
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


def update(engine, batches):
    if len(batches) == 1:
        return engine.train_batch(*batches[0], 0.05)
    return engine.train_parts(iter(batches), BATCH * len(batches), 0.05)


@pytest.mark.representative("chips")
@pytest.mark.parametrize("case", [pytest.param(case, marks=() if case in ("chips", "accumulated") else pytest.mark.wide) for case in CASES])
def test_the_norm_is_that_of_the_gradients_on_all_tiles(tmp_path, case):
    project = made(tmp_path, *CASES[case])
    engine, reference = project.open(), project.reference()
    for number in range(3):
        parts = [project.data(seed=10 * number + part) for part in range(PARTS if "accumulated" in case else 1)]
        assert update(engine, parts) == pytest.approx(update(reference, parts), rel=1e-6)
        for name, gradient in reference.gradients().items():
            np.testing.assert_allclose(engine.gradients()[name], gradient, atol=1e-6 * max(1, np.abs(gradient).max()), err_msg=name)
        for name, value in reference.get_parameters().items():
            np.testing.assert_allclose(engine.get_parameters()[name], value, atol=1e-6 if case != "chips" else 1e-4, err_msg=name)


@pytest.mark.wide
@pytest.mark.parametrize("chips", [1, 2])
def test_cycles_of_the_norm_are_those_of_the_emitted_program(tmp_path, chips):
    project = made(tmp_path, spiking_recurrent, SGD(0.05, 0.9, clip_norm=0.05), machine(60 // chips, chips), chips)
    engine = project.open()
    engine.train_batch(*project.data(), 0.05)
    found = {s["name"]: s for s in engine.profile()["emulator"]["steps"] if s["name"].startswith("U1") and s["executions"]}
    predicted = {phase.name: phase for phase in project.plan.phases if phase.part == "update"}
    names = STEPS_OF_THE_NORM | ({"update: norm of chips": "U1 norm of chips"} if chips > 1 else {}) | {"update: optimiser": "U1 update"}
    assert {names[name] for name in predicted if name in names} == set(found) - {"U1 private gradients"}
    for name, step in names.items():
        assert predicted[name].compute == pytest.approx(found[step]["compute_cycles_busiest"], rel=0.1), name
        if name != "update: squares":  # of gradients of replicas, whose pieces are an estimate
            moved = found[step].get("exchange_cycles", 0) + found[step].get("link_cycles", 0)
            assert predicted[name].exchange == pytest.approx(moved, rel=0.1), name


def test_the_sums_of_squares_take_the_memory_that_is_counted():
    held = {}
    for norm in (None, 0.05):
        _, plan = planned(recurrent, SGD(0.05, clip_norm=norm), machine(4))
        held[norm] = sum(plan.memory["optimiser"]) if "optimiser" in plan.memory else 0
    workers = plan.target.workers
    shares = (held[0.05] - held[None] - 4 * 5) / (4 * workers)  # four tiles' sums and the factor
    assert shares == int(shares) > 0
