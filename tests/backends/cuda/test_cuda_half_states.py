"""Float16 states in a CUDA program, checked with its kernels on the CPU: the reference's numbers."""

import numpy as np
import pytest
from cpu_projects import data
from cuda_projects import opened
from half_projects import dyadic
from nets import recurrent

from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower


def test_records_and_gradients_equal_those_of_the_reference():
    options = {"loss": parse_loss("ce_mean_membrane"), "optimizer": Adam(1e-3), "loss_output": "y"}
    program = dyadic(lower(recurrent(np.random.default_rng(3)), half=("states",), **options))
    reference = ReferenceEngine(program)
    unrounded = ReferenceEngine(dyadic(lower(recurrent(np.random.default_rng(3)), **options)))
    inputs, target = data(program)
    inputs = {name: np.round(x * 16) / 16 for name, x in inputs.items()}
    with opened(program) as engine:
        records, wanted, others = (e.forward(inputs, {}) for e in (engine, reference, unrounded))
        for record in wanted:
            np.testing.assert_array_equal(records[record], wanted[record])
            assert (others[record] != wanted[record]).any()
        assert engine.train_batch(inputs, target, 0.01) == pytest.approx(reference.train_batch(inputs, target, 0.01), rel=1e-6)
        found = engine.gradients()
        for name, gradient in reference.gradients().items():
            assert np.linalg.norm(found[name] - gradient) <= 1e-5 * max(1e-3, np.linalg.norm(gradient)), name
