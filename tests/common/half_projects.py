"""Networks, machines and plans for tests of states and histories in half precision."""

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pytest
from cpu_projects import data
from nets import of_model, recurrent
from poplar_projects import BATCH, STEPS, Project, machine, spiking, spiking_recurrent, workplace
from windowed_nets import deep

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import SLSTM, CubaLIF
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity

CASES = {
    "recurrent": (recurrent, machine(4), {}),
    "odd": (partial(spiking, hidden=37), machine(1), {"loss_output": "y"}),
    "synaptic": (lambda random: of_model(random, CubaLIF(0.7, 0.9)), machine(2), {}),
    "lstm": (lambda random: of_model(random, SLSTM(threshold=0.1)), machine(8), {}),
    "segments": (spiking_recurrent, machine(4), {"recompute": 5, "loss_output": "y"}),
    "streamed": (spiking_recurrent, machine(4), {"recompute": 5, "streaming": "history", "loss_output": "y"}),
    "boundaries": (spiking_recurrent, machine(4), {"recompute": 5, "streaming": "boundaries", "loss_output": "y"}),
    "fused": (deep, machine(4), {"fused": True, "gradients": "windowed", "loss_output": "y"}),
}


def dyadic(program):
    """The same with weights of few bits: every order of adding them gives the same sums."""
    rounded = {name: replace(p, value=(np.round(p.value * 64) / 64).astype(np.float32)) for name, p in program.parameters.items()}
    kept = {c.weight for c in program.connections} | {c.bias for c in program.connections}
    return replace(program, parameters=program.parameters | {name: p for name, p in rounded.items() if name in kept})


def assert_same_as_the_reference(opened, make, half, tolerance, **options):
    """Compare records, a loss and gradients of a native program; records must differ from those of float32."""
    given = {"loss": parse_loss("ce_mean_membrane"), "optimizer": Adam(1e-3), "loss_output": "y"}
    program = dyadic(lower(make(np.random.default_rng(3)), half=half, **given))
    reference, unrounded = ReferenceEngine(program), ReferenceEngine(dyadic(lower(make(np.random.default_rng(3)), **given)))
    inputs, target = data(program)
    inputs = {name: np.round(x * 16) / 16 for name, x in inputs.items()}
    with opened(program, **options) as engine:
        records, wanted, others = (e.forward(inputs, {}) for e in (engine, reference, unrounded))
        for record in wanted:
            np.testing.assert_array_equal(records[record], wanted[record])
            assert (others[record] != wanted[record]).any()
        assert engine.train_batch(inputs, target, 0.01) == pytest.approx(reference.train_batch(inputs, target, 0.01), rel=1e-6)
        found = engine.gradients()
        for name, gradient in reference.gradients().items():
            assert np.linalg.norm(found[name] - gradient) <= tolerance * max(1e-3, np.linalg.norm(gradient)), name


@lru_cache(maxsize=16)
def project(name, half=("history",)):
    make, target, given = CASES[name]
    options = {key: value for key, value in given.items() if key != "loss_output"}
    loss = parse_loss("ce_mean_membrane")
    graph = make(np.random.default_rng(3))
    program = dyadic(lower(graph, loss=loss, loss_output=given.get("loss_output"), optimizer=Adam(1e-2), steps=STEPS, half=half))
    plan = make_plan(program, target, steps=STEPS, batch=BATCH, effort=0, **options)
    return Project(program, plan, emit_poplar(program, plan, workplace().path / f"half-{name}-{len(half)}"))


def predicted_and_emulated(folder, half, steps=60, **options):
    graph = spiking_recurrent(np.random.default_rng(3))
    program = lower(graph, loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(1e-2), steps=steps, half=half)
    random = np.random.default_rng(1)
    x = {"x0": (random.random((steps, BATCH, 40)) < 0.1).astype(np.float32)}
    seen = measure_activity(program, x, "the test's inputs")
    plan = make_plan(program, machine(4), steps=steps, batch=BATCH, effort=0, activity=seen.mean, counts=seen.counts, **options)
    engine = open_engine(emit_poplar(program, plan, folder / "-".join(("project", *half))))
    engine.train_batch(x, random.integers(0, 4, BATCH), 0.0)
    return plan, engine.profile()["emulator"]
