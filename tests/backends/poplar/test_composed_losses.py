"""Composed losses of the emitted Poplar program on the emulator, against the reference."""

import composed_losses
import pytest
import same_training
from cpu_projects import FLOAT32
from poplar_projects import machine

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.poplar.errors import UnsupportedOnPoplarError
from snnc.backends.poplar.vertices.losses import check_loss
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.tiles.mapper import make_plan

STEPS, BATCH = 7, 4
TEXTS = (*composed_losses.CLASS_TARGETS, composed_losses.SUMS[0], composed_losses.SUMS[1], composed_losses.SUMS[3], composed_losses.OWN[1])
QUICK = (composed_losses.SUMS[1], "mse_count:classes=4,on=0.8,off=0.1")


@pytest.mark.parametrize("text", [text if text in QUICK else pytest.param(text, marks=pytest.mark.wide) for text in TEXTS])
def test_training_steps_equal_those_of_the_reference(tmp_path, text):
    program = composed_losses.program_of(text, steps=STEPS)
    check_loss(program.loss)
    plan = make_plan(program, machine(16), steps=STEPS, batch=BATCH)
    engine = open_engine(emit_poplar(program, plan, tmp_path / "project"))
    made = composed_losses.batches(program, 3, STEPS, BATCH)
    same_training.assert_same_training(engine, ReferenceEngine(program), made, tolerance=FLOAT32)
    engine.close()


@pytest.mark.parametrize("text", [*composed_losses.OTHER_TARGETS, "ce_count + upper_rate:bound=0.2"])
def test_what_a_machine_cannot_do_is_refused(text):
    with pytest.raises(UnsupportedOnPoplarError):
        check_loss(composed_losses.program_of(text).loss)
