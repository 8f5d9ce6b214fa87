"""Updates whose samples are run in parts, and returned gradients, compared with the reference and with single updates."""

import numpy as np
import pytest
from cpu_projects import data, parts_of
from cpu_projects import opened as opened_cpu
from cuda_projects import opened, program_of

from snnc.backends.reference.engine import ReferenceEngine

BATCH = 7


@pytest.mark.representative("recurrent")
@pytest.mark.parametrize("name", ["recurrent", "delayed", "feedback", "learnable", "skip"])
def test_an_update_in_parts_is_that_of_all_samples_for_every_loss(name):
    program = program_of(name)
    inputs, labels = data(program, 9, BATCH)
    reference = ReferenceEngine(program)
    wanted = reference.train_batch(inputs, labels, 1e-2)
    with opened(program) as engine:
        if name == "learnable":
            engine.segment = 4
        assert engine.train_parts(iter(parts_of(inputs, labels, 3, 4)), BATCH, 1e-2) == pytest.approx(wanted, rel=1e-5)
        gradients = reference.gradients()
        whole = np.sqrt(sum(float(np.square(g).sum()) for g in gradients.values()))
        for label, gradient in gradients.items():
            error = np.linalg.norm(engine.gradients()[label] - gradient)
            assert error <= 1e-4 * max(np.linalg.norm(gradient), 0.05 * whole), label
        for label, value in reference.get_parameters().items():
            np.testing.assert_allclose(engine.get_parameters()[label], value, atol=2e-5, err_msg=label)


@pytest.mark.representative("cpu-learnable", "cuda-sparse_recurrent")
@pytest.mark.parametrize("name", ["learnable", "sparse_recurrent", pytest.param("convolutional", marks=pytest.mark.wide)])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_an_update_from_gradients_that_were_handed_over_is_the_same_to_the_bit(target, name):
    program = program_of(name)
    inputs, labels = data(program, 9, BATCH)
    with opened_cpu(program, threads=3) if target == "cpu" else opened(program) as engine:
        start = engine.get_parameters(), engine.get_optimizer()
        engine.train_batch(inputs, labels, 1e-2)
        wanted, gradients, kept = engine.get_parameters(), engine.gradients(), engine.get_optimizer()
        engine.set_parameters(start[0])
        engine.set_optimizer(start[1])
        engine.gather_parts(parts_of(inputs, labels), BATCH)
        for name, value in engine.get_parameters().items():
            np.testing.assert_array_equal(value, start[0][name], err_msg=name)
        flat = np.empty(engine.gradient_elements, np.float32)
        engine.gradients_to(flat.ctypes.data)
        twice = 2 * flat
        engine.gradients_from(twice.ctypes.data)
        for name, value in engine.gradients().items():
            np.testing.assert_array_equal(value, 2 * gradients[name], err_msg=name)
        engine.gradients_from(flat.ctypes.data)
        engine.change_parameters(1e-2)
        for name, value in engine.get_parameters().items():
            np.testing.assert_array_equal(value, wanted[name], err_msg=name)
        assert engine.get_optimizer().updates == kept.updates
        # What was set does not stay for the next step.
        engine.set_parameters(start[0])
        engine.train_batch(inputs, labels, 0.0)
        for name, value in engine.gradients().items():
            np.testing.assert_array_equal(value, gradients[name], err_msg=name)
