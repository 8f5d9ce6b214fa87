"""Every cell of the table (loss, optimiser, target) trains like the reference, or is refused with the code on the page.

Losses with the same kind of targets are trained as one sum, so a compiled program covers many; each is compared separately in
``test_every_loss_and_optimizer``.
"""

import re
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from frameworks import torch  # noqa: F401  # the helpers of targets need it
from option_cells import MACHINES
from torch_losses import targets_for

import snnc
from snnc.backends.registry import BACKENDS
from snnc.backends.training.schedules import Plateau, parse_schedule
from snnc.checks.training_cells import loss_rows, optimizer_rows, precision_rows, refusal, schedule_rows
from snnc.compiler.losses.optimizers import Group, UpdateOptions
from snnc.driver.lowering import lower_graph
from snnc.errors import SnncError
from snnc.options.compile_options import options
from snnc.options.optimizers import KINDS, parse_optimizer

STEPS, BATCH, INPUTS, OUTPUTS = 6, 4, 8, 6
CLOSE = 1e-5
BY_NAME = {backend.name: backend for backend in BACKENDS}
TRAINED = {"cpu": "cpu", "cuda": "cuda", "machine": "one.toml"}
"""Targets whose sessions train, by the name of their backend; a package for PopTorch has tests of its own losses and its train.py."""
QUICK = {"cpu": (0, 5), "cuda": (4,), "machine": (1,)}
"""Sums that are always trained, by place."""
REFUSED = (("cpu", "half=deltas"), ("cpu", "precision=tf32"), ("cuda", "half=deltas"), ("machine", "precision=tf32"))
"""Some of the precisions that targets refuse."""


def net():
    made = snnc.Network("net", seed=1)
    spikes = made.input(INPUTS, kind="spikes")
    hidden = made.population(10, snnc.LIF(beta=0.9), name="hidden")
    out = made.population(OUTPUTS, snnc.LIF(beta=0.8), name="out")
    made.connect(spikes, hidden, snnc.Dense(init=snnc.Normal(std=0.8)))
    made.connect(hidden, out, snnc.Dense(init=snnc.Normal(std=0.8)))
    return made


def kind_of(loss):
    """What losses of one sum have in common: targets, lengths, classes."""
    return tuple(re.findall(r"targets=\w+|lengths|classes=\d+", loss))


@cache
def sums():
    """A text for each kind of targets, the sum of all losses with it; regularisers stand beside the losses of classes."""
    found = {}
    for loss in loss_rows():
        found.setdefault(kind_of(loss), []).extend(loss.split(" + "))
    return tuple(" + ".join(dict.fromkeys(parts)) for parts in found.values())


def samples(text):
    random = np.random.default_rng(2)
    x = (random.random((2 * BATCH, STEPS, INPUTS)) < 0.5).astype(np.float32)
    return x, targets_for(text.split(" + ")[0], random, STEPS, 2 * BATCH, OUTPUTS)


def trained(session, text, **given):
    """The losses of two updates or more, and the weights after them."""
    x, y = samples(text)
    history = session.fit(x, y, batch=BATCH, shuffle=False, **given)
    return [loss for epoch in history.batch_losses for loss in epoch], session.state_dict()


def assert_same(found, wanted):
    """Losses differ by 1e-5 of themselves, weights by 1e-5 of the largest of their tensor: sums of float32 round by their largest terms."""
    np.testing.assert_allclose(found[0], wanted[0], rtol=CLOSE, atol=CLOSE)
    for name, value in wanted[1].items():
        np.testing.assert_allclose(found[1][name], value, rtol=CLOSE, atol=CLOSE * max(1.0, np.abs(value).max()), err_msg=name)


def prepare(folder, monkeypatch):
    """The machine's file, and CUDA's kernels on the CPU where there is no GPU."""
    (folder / "one.toml").write_text(MACHINES["one.toml"])
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SNNC_CUDA_ON_HOST", "1")


def compiled(target, text, optimizer, folder):
    return snnc.compile(net(), target, output=folder, loss=text, optimizer=optimizer, steps=STEPS, batch=BATCH, seed=1)


def cells():
    """Each sum with some optimiser, and each optimiser with some sum."""
    number = max(len(sums()), len(optimizer_rows()))
    for name in TRAINED:
        for i in range(number):
            marks = () if i in QUICK[name] else pytest.mark.wide
            yield pytest.param(name, sums()[i % len(sums())], optimizer_rows()[i % len(optimizer_rows())], marks=marks, id=f"{name}-{i}")


@pytest.mark.parametrize(("name", "text", "optimizer"), list(cells()))
def test_a_cell_trains_as_the_reference_does_or_is_refused(tmp_path, monkeypatch, name, text, optimizer):
    prepare(tmp_path, monkeypatch)
    if refused := refusal(BY_NAME[name], net().graph(), text, optimizer, STEPS):
        with pytest.raises(type(refused), match=f"^{refused.code}"):
            compiled(TRAINED[name], text, optimizer, "refused")
        assert not (tmp_path / "refused").exists()
        return
    with compiled("reference", text, optimizer, "reference") as reference:
        wanted = trained(reference, text)
    with compiled(TRAINED[name], text, optimizer, "target") as session:
        before = session.state_dict()
        found = trained(session, text)
    assert_same(found, wanted)
    assert any(np.abs(found[1][label] - value).max() > 10 * CLOSE for label, value in before.items())


@cache
def lowered():
    """The program of each loss."""
    return {text: lower_graph(net().graph(), options("reference", loss=text, optimizer="sgd", steps=STEPS)).program for text in loss_rows()}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_every_refusal_is_one_of_the_loss_or_of_the_optimizer_alone(backend):
    """So the page has a table of each, and no combination has a code of its own."""
    accepted = options(backend.name if backend.about else "gc200", loss="ce_count", steps=STEPS).for_backend()

    def code(loss, optimizer):
        try:
            backend.check(replace(lowered()[loss], optimizer=parse_optimizer(optimizer)), accepted)
        except SnncError as error:
            return error.code
        return ""

    losses, optimizers = loss_rows(), optimizer_rows()
    of_optimizers = {text: code(losses[0], text) for text in optimizers}
    assert not any(code(loss, "sgd:0.1") for loss in losses), "the page has no column of refused losses"
    for loss in losses:
        for optimizer in optimizers:
            assert code(loss, optimizer) == of_optimizers[optimizer]
    shown = {text: refusal(backend, net().graph(), losses[0], text, STEPS) for text in optimizers}
    assert of_optimizers == {text: "" if error is None else error.code for text, error in shown.items()}


def precise(name, row, folder):
    """Losses and weights of a run with a row of the precisions, on `name`; of its loss, and of float32 where the row is empty."""
    setting, _, value = row.partition("=")
    more = {setting: value} if row else {}
    target = TRAINED.get(name, name)
    chosen = {"loss": "ce_count", "optimizer": "sgd:0.1", "steps": STEPS, "batch": BATCH, "seed": 1, **more}
    with snnc.compile(net(), target, output=folder, **chosen) as session:
        return trained(session, "ce_count")


def precision_cells():
    """Most rows compile programs, so a default run has only refused ones."""
    for name in TRAINED:
        for row in precision_rows():
            quick = (name, row) in REFUSED
            yield pytest.param(name, row, marks=() if quick else pytest.mark.wide, id=f"{name}-{row}")


@pytest.mark.parametrize(("name", "row"), list(precision_cells()))
def test_a_precision_changes_what_is_trained_and_not_much_or_is_refused(tmp_path, monkeypatch, name, row):
    prepare(tmp_path, monkeypatch)
    if refused := refusal(BY_NAME[name], net().graph(), "ce_count", "sgd:0.1", STEPS, row):
        with pytest.raises(type(refused), match=f"^{refused.code}"):
            precise(name, row, "refused")
        return
    losses, weights = precise(name, row, "rounded")
    wanted, exact = precise("reference", row, "same") if row.startswith("half=") else precise(name, "", "whole")
    np.testing.assert_allclose(losses, wanted, rtol=1e-2)
    for label, value in weights.items():
        # Two updates of at most two float16 steps, or what rounded gradients change.
        np.testing.assert_allclose(value, exact[label], rtol=2**-9, atol=2e-3, err_msg=label)
    plain = precise(name, "", "float32")[1]
    assert any((value != plain[label]).any() for label, value in weights.items())
    if row.startswith("half=weights"):
        dense = [value for label, value in weights.items() if label.endswith("weight")]
        assert dense
        assert all((value == value.astype(np.float16)).all() for value in dense)


@pytest.mark.parametrize("row", precision_rows())
def test_a_package_for_poptorch_has_each_precision_or_refuses_it(row):
    graph = net().graph()
    refused = refusal(BY_NAME["poptorch"], graph, "ce_count", "sgd:0.1", STEPS, row)
    assert (refused is not None) == (row in ("precision=tf32", "precision=bfloat16") or "weights" in row)
    if refused is None:
        setting, _, value = row.partition("=")
        program = lower_graph(graph, options("poptorch", loss="ce_count", optimizer="sgd:0.1", steps=STEPS, **{setting: value})).program
        rounds = any(p.kernel.rounded for p in program.populations), any(getattr(op, "half", False) for op in program.backward)
        assert rounds == ("deltas" not in row, "deltas" in row)


def test_every_setting_of_an_optimizer_has_a_row():
    texts = " ".join(optimizer_rows())
    assert {text.partition(":")[0] for text in optimizer_rows()} == KINDS.keys()
    for field in fields(UpdateOptions):
        assert field.name in texts or field.name == "groups"
    assert all(f"*.bias: {field.name}" in texts for field in fields(Group) if field.name != "pattern")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "cpu" else pytest.mark.wide) for name in TRAINED])
def test_every_schedule_and_accumulation_train_as_on_the_reference(tmp_path, monkeypatch, name):
    """They are arguments of `fit`: one program trains with all of them, from the same weights."""
    prepare(tmp_path, monkeypatch)
    text, optimizer = "ce_mean_membrane", "sgd:0.1,accumulate"
    x, y = samples(text)
    with compiled("reference", text, optimizer, "reference") as reference, compiled(TRAINED[name], text, optimizer, "target") as session:
        start = reference.state_dict()
        ways = [{"learning_rate": parse_schedule(form)} for form in schedule_rows()] + [{"accumulate": 2}]
        for way in ways:
            given = way | ({"batch": 2 * BATCH} if "accumulate" in way else {"batch": BATCH})
            validated = {"validation": (x, y)} if isinstance(way.get("learning_rate"), Plateau) else {}
            results = []
            for each in (reference, session):
                each.load_state_dict(start)
                history = each.fit(x, y, shuffle=False, epochs=2, **given, **validated)
                results.append(([loss for epoch in history.batch_losses for loss in epoch], each.state_dict()))
            assert_same(results[1], results[0])
