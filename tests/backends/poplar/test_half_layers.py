"""Float16 numbers that differ by layer, on machines: the reference's records and gradients; memory and cycles as predicted."""

import numpy as np
import pytest
from half_layers import CHOICES, chain, chosen, spikes_of
from half_projects import dyadic
from poplar_projects import STEPS, Project, machine

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.mapper import make_plan
from snnc.driver.activity import measure_activity

BATCH = 8


def project(folder, half, tiles=3, **options):
    given = {"loss": parse_loss("ce_mean_membrane"), "loss_output": "readout.v", "optimizer": SGD(0.05), "steps": STEPS}
    program = dyadic(lower(chain(np.random.default_rng(3)), half=half, **given))
    seen = measure_activity(program, spikes_of(program, STEPS, BATCH)[0], "the test's inputs")
    more = {"steps": STEPS, "batch": BATCH, "effort": 0, "activity": seen.mean, "counts": seen.counts, **options}
    plan = make_plan(program, machine(tiles), **more)
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


@pytest.mark.representative("mixed-whole")
@pytest.mark.parametrize("options", [{}, {"recompute": 4}], ids=["whole", "segments"])
@pytest.mark.parametrize("name", CHOICES)
def test_records_and_gradients_equal_those_of_the_reference(tmp_path, name, options):
    case = project(tmp_path, chosen(name), **options)
    engine, reference = case.open(), case.reference()
    inputs, target = spikes_of(case.program, STEPS, BATCH)
    records, wanted = engine.forward(inputs, {}), reference.forward(inputs, {})
    for record in wanted:
        np.testing.assert_array_equal(records[record], wanted[record])
    assert engine.train_batch(inputs, target, 0.0) == pytest.approx(reference.train_batch(inputs, target, 0.0), rel=1e-6)
    found = engine.gradients()
    for parameter, gradient in reference.gradients().items():
        assert np.linalg.norm(gradient) > 0
        assert np.linalg.norm(found[parameter] - gradient) <= 2e-6 * np.linalg.norm(gradient), parameter


def trained(folder, half, **options):
    """The plan, its bytes of variables, and the cycles and bytes that the emulator counted."""
    case = project(folder, half, **options)
    engine = case.open()
    engine.train_batch(*spikes_of(case.program, STEPS, BATCH), 0.0)
    emulated, memory = engine.profile()["emulator"], case.plan.memory
    planned = sum(sum(memory[name]) for name in memory if name not in ("exchange", "vertices", "tables", "code"))
    return case.plan, planned, emulated["cycles_last_run"], sum(emulated["per_tile"]["peak"]["variables"])


@pytest.mark.wide
@pytest.mark.parametrize("name", CHOICES)
def test_cycles_and_bytes_are_those_of_the_emulator(tmp_path, name):
    plan, planned, cycles, taken = trained(tmp_path, chosen(name))
    assert plan.cycles == pytest.approx(cycles, rel=0.05)
    assert planned == pytest.approx(taken, rel=0.01)


@pytest.mark.wide
@pytest.mark.parametrize("name", CHOICES)
def test_with_segments_bytes_are_those_of_the_emulator(tmp_path, name):
    _, planned, _, taken = trained(tmp_path / "half", chosen(name), recompute=4)
    _, wide, _, wide_taken = trained(tmp_path / "float", (), recompute=4)
    assert [planned, wide] == pytest.approx([taken, wide_taken], rel=0.01)
    assert planned < wide
    assert taken < wide_taken
