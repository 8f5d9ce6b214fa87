"""Equations that run for two neurons at once, and alone for the last of an odd number."""

import numpy as np
import pytest
from nets import of_model
from poplar_projects import BATCH, STEPS, Project, machine

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.expression import ROUND
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.tiles.mapped.operations import KINDS, operation_counts
from snnc.compiler.tiles.mapper import make_plan

EVERY = neuron(
    "every",
    states={"v": 0.3, "u": 0.2, "w": 0.0},
    params={"beta": 0.9, "b": 0.4},
    equations="""
        z = spike_ge(v - 0.7)
        u = 0.5*tanh(u) + 0.1*sin(v)*cos(u) - sign(u)*min(abs(v), 0.2)
        w = where(gt(u, 0.05), sqrt(abs(u) + 1) - 1, where(ge(v, b), erf(v), log(1 + exp(-abs(v))))) / (2 + w**2)
        v = beta*v + i - detach(z) + 0.1*sigmoid(u) - max(w, -u) + (abs(b) + 0.1)**1.5
        s = spike(v - 1)
    """,
)


@pytest.mark.representative("1")
@pytest.mark.parametrize("tiles", [1, 2])
def test_every_function_of_the_language_is_what_the_reference_says(tiles, tmp_path):
    graph = of_model(np.random.default_rng(3), EVERY)
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=SGD(1e-2), steps=STEPS)
    kernel = program.populations[0].kernel
    in_users_text = {kind for kinds in KINDS.values() for kind in kinds} - {ROUND}
    assert in_users_text <= {*operation_counts(kernel.forward), *operation_counts(kernel.backward)}
    plan = make_plan(program, machine(tiles), steps=STEPS, batch=BATCH)
    case = Project(program, plan, emit_poplar(program, plan, tmp_path / "project"))
    counts = {block.count for placed in plan.populations for block in placed.blocks}
    assert any(n % 2 for n in counts) or any(n > 1 for n in counts)
    engine, reference = case.open(), case.reference()
    inputs, target = case.data()
    assert engine.train_batch(inputs, target, 1e-2) == pytest.approx(reference.train_batch(inputs, target, 1e-2), rel=1e-5)
    found = engine.gradients()
    for name, gradient in reference.gradients().items():
        assert np.linalg.norm(found[name] - gradient) <= 1e-5 * max(np.linalg.norm(gradient), 1.0), name
