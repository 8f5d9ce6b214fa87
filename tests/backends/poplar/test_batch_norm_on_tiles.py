"""Batch normalisation trained by emitted Poplar programs: updates and running statistics are those of the reference."""

import numpy as np
import pytest
from poplar_projects import BATCH, STEPS, Project, machine

import snnc
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.training.updates.normalising import NormalisingEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan

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
}


def made(folder, make, optimizer, target, options):
    graph = make()
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), loss_output="li", optimizer=optimizer, steps=STEPS)
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, effort=0, **options)
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


def engines(case):
    return [NormalisingEngine(engine, case.program) for engine in (case.open(), case.reference())]


@pytest.mark.parametrize("name", CASES)
def test_updates_and_running_statistics_are_those_of_the_reference(tmp_path, name):
    case = made(tmp_path, *CASES[name])
    engine, reference = engines(case)
    first, updates = engine.get_parameters(), 20 if name == "dense" else 3
    for update in range(updates):
        inputs, target = case.data(seed=update)
        inputs = {id_: x for id_, x in inputs.items() if id_ in {"x0"}}
        losses = [e.train_batch(inputs, target, 0.05) for e in (engine, reference)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    found, wanted = engine.get_parameters(), reference.get_parameters()
    for parameter, value in wanted.items():
        np.testing.assert_allclose(found[parameter], value, rtol=1e-4, atol=1e-5, err_msg=case.program.parameters[parameter].label)
    running = [p.name for p in case.program.parameters.values() if p.label.endswith(("statistics.mean", "statistics.var"))]
    assert all((found[name] != first[name]).any() for name in running)
    records = [e.forward(inputs, {}) for e in (engine, reference)]
    for output, value in records[1].items():
        np.testing.assert_allclose(records[0][output], value, rtol=1e-4, atol=1e-5)
