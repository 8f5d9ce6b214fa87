"""Composed losses of the emitted CUDA program, built for the CPU, compared with the reference."""

import composed_losses
import pytest
import same_training
from cpu_projects import FLOAT32
from cuda_projects import opened

from snnc.backends.reference.engine import ReferenceEngine

QUICK = (composed_losses.SUMS[1],)


@pytest.mark.parametrize("text", [text if text in QUICK else pytest.param(text, marks=pytest.mark.wide) for text in composed_losses.ALL])
def test_training_steps_equal_those_of_the_reference(text):
    program = composed_losses.program_of(text)
    with opened(program) as engine:
        made = composed_losses.batches(program, 2)
        same_training.assert_same_training(engine, ReferenceEngine(program), made, tolerance=FLOAT32)
