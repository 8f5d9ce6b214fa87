"""Gradients of several batches, kept on the tiles until one update, compared with one batch of all samples on the reference."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from indexed_nets import sparse_recurrent
from nets import learnable, recurrent
from poplar_projects import BATCH, EFFORT, STEPS, Project, machine, several_inputs

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.runtime.errors import BatchSizeError, TrainingOptionError
from snnc.backends.session import BackendSession
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam, AdamW, Group
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles import make_plan

GROUPS = (Group("*.bias", weight_decay=0.0), Group("rec.*", lr=0.1))
CASES = {
    "groups": (recurrent, AdamW(1e-2, weight_decay=0.3, groups=GROUPS, accumulate=True), machine(4), None),
    "replicas": (recurrent, SGD(0.05, 0.9, accumulate=True), machine(3, 5), 5),
    "tables": (sparse_recurrent, SGD(0.05, 0.9, accumulate=True), machine(4), None),
    "chips": (learnable, Adam(1e-2, accumulate=True), machine(2, 2), None),
    "inputs": (several_inputs, SGD(1e-2, clip_value=0.02, accumulate=True), machine(3), None),
}
PARTS = 3


@cache
def planned(make, optimizer, target=None, chips=None):
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=optimizer, loss_output="y", steps=STEPS)
    return program, make_plan(program, target or machine(4), steps=STEPS, batch=BATCH, effort=EFFORT, chips=chips)


def made(folder, *case):
    program, plan = planned(*case)
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


def batches(project, first=0):
    return [project.data(seed=first + part) for part in range(PARTS)]


def at_once(parts):
    inputs = {name: np.concatenate([part[name] for part, _ in parts], axis=1) for name in parts[0][0]}
    return inputs, np.concatenate([labels for _, labels in parts])


@pytest.mark.parametrize("case", [pytest.param(case, marks=() if case == "groups" else pytest.mark.wide) for case in CASES])
def test_an_update_from_several_batches_is_that_of_one_batch_of_all_samples(tmp_path, case):
    project = made(tmp_path, *CASES[case])
    engine, reference = project.open(), project.reference()
    assert engine.accumulates
    for update in range(3):
        parts = batches(project, 10 * update)
        loss = engine.train_parts(iter(parts), PARTS * BATCH, 1e-2)
        assert loss == pytest.approx(reference.train_batch(*at_once(parts), 1e-2), rel=1e-6)
        for name, gradient in reference.gradients().items():
            np.testing.assert_allclose(engine.gradients()[name], gradient, atol=1e-6 * max(1, np.abs(gradient).max()), err_msg=name)
        for name, value in reference.get_parameters().items():
            np.testing.assert_allclose(engine.get_parameters()[name], value, atol=1e-6 if "adam" not in case else 1e-4, err_msg=name)
    assert engine.get_optimizer().updates == 3


def test_batches_alone_and_broken_updates_leave_nothing_behind(tmp_path):
    project = made(tmp_path, *CASES["groups"])
    plain = made(tmp_path / "plain", recurrent, replace(CASES["groups"][1], accumulate=False))
    engine, other = project.open(), plain.open()
    inputs, labels = project.data(seed=1)

    def broken():
        yield inputs, labels
        raise KeyboardInterrupt

    assert engine.train_batch(inputs, labels, 1e-2) == other.train_batch(inputs, labels, 1e-2)
    before = engine.get_parameters()
    with pytest.raises(KeyboardInterrupt):
        engine.train_parts(broken(), 2 * BATCH, 1e-2)
    for name, value in engine.get_parameters().items():
        np.testing.assert_array_equal(value, before[name])
    assert engine.train_batch(inputs, labels, 1e-2) == other.train_batch(inputs, labels, 1e-2)
    for name, value in other.get_parameters().items():
        np.testing.assert_array_equal(engine.get_parameters()[name], value, err_msg=name)
    assert "batches" not in other.session.tensors


def test_a_session_accumulates_where_the_program_can(tmp_path):
    project = made(tmp_path, *CASES["groups"])
    session = BackendSession(project.open(), project.program)
    inputs, labels = at_once(batches(project))
    x = {info.label: np.moveaxis(inputs[info.id], 1, 0) for info in project.program.inputs}
    history = session.fit(x, labels, epochs=2, accumulate=2)
    assert (len(history.losses), history.dropped) == (2, 2 * BATCH // 2)
    assert session.engine.get_optimizer().updates == 2
    with pytest.raises(BatchSizeError, match="an update of 2 batches has 10 samples"):
        session.fit(x, labels, batch=5, accumulate=2)
    with pytest.raises(BatchSizeError, match="15 samples do not fill 4 batches of 5"):
        session.fit(x, labels, accumulate=4)
    plain = made(tmp_path / "plain", recurrent, Adam(1e-2))
    refused = BackendSession(plain.open(), plain.program)
    with pytest.raises(TrainingOptionError, match=r"adam:0\.001,accumulate"):
        refused.fit(x, labels, accumulate=2)


def test_the_kept_gradients_take_the_tile_memory_of_one_moment():
    plans = (planned(recurrent, Adam(1e-2, accumulate=accumulate))[1] for accumulate in (False, True))
    held = [sum(sum(kept) for part, kept in plan.memory.items() if part == "optimiser") for plan in plans]
    assert held[1] == 1.5 * held[0] > 0
