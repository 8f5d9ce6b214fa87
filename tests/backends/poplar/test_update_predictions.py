"""Predicted cost of an update, superstep by superstep, compared with the emulator's counts for the emitted program."""

import numpy as np
import pytest
from indexed_nets import sparse_recurrent
from poplar_projects import BATCH, STEPS, Project, machine, several_inputs, spiking_recurrent
from test_any_mapping import random_placement

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam, RMSprop
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan

COPIES = {
    "update: replicas": "U2 replicas",
    "update: shared numbers": "U2 shared numbers",
    "update: weight copies": "U2 weights to sources",
}
SUMS = {"update: private gradients": "U1 private gradients", "update: optimiser": "U1 update"}
SUPERVISOR = 11
"""Tile cycles of each vertex that all workers share, which the emulator counts and the prediction leaves out."""


def counted(case):
    """Per run of each step of the update: computing and exchanging."""
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 0.01)
    steps = [step for step in engine.profile()["emulator"]["steps"] if step["name"].startswith("U") and step["executions"]]
    kinds = ("compute_cycles_busiest",), ("exchange_cycles", "link_cycles")
    return {step["name"]: [sum(step.get(n, 0) for n in names) / step["executions"] for names in kinds] for step in steps}


@pytest.mark.wide
@pytest.mark.parametrize(
    ("make", "optimizer", "seed", "copies"),
    [
        (spiking_recurrent, Adam(1e-2), 1, 1),
        (spiking_recurrent, SGD(1e-2, 0.9), 2, 1),
        (several_inputs, SGD(1e-2), 3, 1),
        (spiking_recurrent, Adam(1e-2, accumulate=True), 3, 1),
        (spiking_recurrent, Adam(1e-2), 5, 5),
        (sparse_recurrent, SGD(1e-2, 0.9), 7, 1),
        (sparse_recurrent, RMSprop(1e-2, momentum=0.9, centered=True, clip_value=0.1), 7, 1),
    ],
)
def test_cycles_of_an_update_are_those_of_the_emitted_program(tmp_path, make, optimizer, seed, copies):
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_count"), loss_output="y", optimizer=optimizer, steps=STEPS)
    machines = machine(110, 2) if copies == 1 else machine(40, copies)
    place = random_placement(np.random.default_rng(seed), copies)
    plan = make_plan(program, machines, steps=STEPS, batch=BATCH, placer=place)
    found = counted(Project(program, plan, emit_poplar(program, plan, tmp_path / "project")))
    predicted = {phase.name: phase for phase in plan.phases if phase.part == "update"}
    names = COPIES | SUMS
    assert {names[name] for name in predicted if name in names} == set(found) - {"U1 shared gradients"}
    for name, step in COPIES.items():
        if step in found:
            compute, exchange = found[step]
            # Pieces of numbers that happen to follow each other on both sides are one on the emulator; weights' pieces are told exactly.
            assert predicted[name].exchange == pytest.approx(exchange, rel=0.001 if "weight" in name else 0.1), name
            assert predicted[name].compute == pytest.approx(compute, abs=3 * SUPERVISOR), name
    for name, step in SUMS.items():
        if step in found:
            assert predicted[name].compute == pytest.approx(found[step][0], rel=0.1), name
