"""Composed losses of the emitted Poplar program on the emulator, compared with the reference."""

import composed_losses
import pytest
import same_training
from cpu_projects import FLOAT32
from poplar_projects import machine

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.tiles.mapper import make_plan

STEPS, BATCH = 7, 4
QUICK = (composed_losses.SUMS[1], "mse_count:lengths,classes=4", "ce_membrane:targets=step_classes,classes=4", composed_losses.OWN[2])


@pytest.mark.representative("text24")
@pytest.mark.parametrize("text", [text if text in QUICK else pytest.param(text, marks=pytest.mark.wide) for text in composed_losses.ALL])
def test_training_steps_equal_those_of_the_reference(tmp_path, text):
    program = composed_losses.program_of(text, steps=STEPS)
    plan = make_plan(program, machine(16), steps=STEPS, batch=BATCH)
    engine = open_engine(emit_poplar(program, plan, tmp_path / "project"))
    made = composed_losses.batches(program, 3, STEPS, BATCH)
    same_training.assert_same_training(engine, ReferenceEngine(program), made, tolerance=FLOAT32)
    engine.close()
