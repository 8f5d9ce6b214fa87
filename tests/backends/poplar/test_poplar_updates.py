"""Twenty updates of the emitted Poplar program compared with torch.optim, and the memory of its moments."""

import numpy as np
import pytest
from indexed_nets import convolutional
from nets import recurrent
from poplar_projects import BATCH, EFFORT, STEPS, Project, machine
from torch_updates import OPTIMIZERS, UPDATES, largest_difference

import snnc
from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.errors import SnncError
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam, AdamW, Group, RMSprop
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles import make_plan

CLOSE = 1e-4
QUICK = ("groups", "rmsprop all", "l1 of groups")
"""Cases that together hold most kinds of statements."""


def planned(make, optimizer):
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=optimizer, loss_output="y", steps=STEPS)
    return program, make_plan(program, machine(4), steps=STEPS, batch=BATCH, effort=EFFORT)


def made(folder, make, optimizer):
    program, plan = planned(make, optimizer)
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


@pytest.mark.wide
@pytest.mark.parametrize("case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.wide) for case in OPTIMIZERS])
def test_the_poplar_program_updates_as_torch_does(tmp_path, case):
    project = made(tmp_path, recurrent, OPTIMIZERS[case])
    batches = (project.data(seed=step) for step in range(UPDATES))
    assert largest_difference(project.open(), project.program, batches) < CLOSE


def test_moments_take_the_tile_memory_that_is_counted():
    held = {}
    for optimizer in (Adam(1e-2), RMSprop(1e-2, momentum=0.9, centered=True)):
        _, plan = planned(recurrent, optimizer)
        held[optimizer.name] = sum(sum(kept) for part, kept in plan.memory.items() if part == "optimiser")
    assert held["rmsprop"] == 1.5 * held["adam"] > 0


@pytest.mark.parametrize(
    ("target", "optimizer", "code"),
    [
        ("poptorch", "sgd:0.1,clip_norm=1", "SNNC-E430"),
        ("poptorch", "adamw:clip_value=1", "SNNC-E430"),
        ("poptorch", "sgd:0.1,0.9,nesterov", "SNNC-E430"),
        ("poptorch", "sgd:0.1,l1=1e-3", "SNNC-E430"),
        ("poptorch", "sgd:0.1; *: bound=1", "SNNC-E430"),
    ],
)
def test_what_a_target_does_not_do_is_refused(target, optimizer, code):
    with pytest.raises(SnncError) as raised:
        snnc.compile(recurrent(np.random.default_rng(3)), target=target, steps=STEPS, loss="ce_mean_membrane", optimizer=optimizer)
    assert raised.value.code == code


OF_PARTS = {
    "decay of weights only": AdamW(1e-2, weight_decay=0.3, groups=(Group("*.bias", lr=0.5, weight_decay=0.0),)),
    "frozen biases": Adam(1e-2, groups=(Group("*.bias", frozen=True),)),
    "frozen weights, clipped": SGD(1e-1, 0.9, clip_norm=0.1, groups=(Group("conv.weight", frozen=True), Group("groups.*", lr=3.0))),
}
"""Groups that separate weights and biases of convolutions."""


@pytest.mark.parametrize("case", [pytest.param(case, marks=() if "decay" in case else pytest.mark.wide) for case in OF_PARTS])
def test_weights_and_biases_of_a_convolution_may_be_in_different_groups(tmp_path, case):
    project = made(tmp_path, convolutional, OF_PARTS[case])
    batches = (project.data(seed=step) for step in range(UPDATES))
    assert largest_difference(project.open(), project.program, batches) < CLOSE
