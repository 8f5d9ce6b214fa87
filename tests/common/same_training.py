"""Requirement on every engine that trains: its updates equal those of the reference."""

import numpy as np
import pytest
from resuming import assert_same_optimizer


def assert_same_training(engine, reference, batches, rate=1e-2, *, tolerance):
    """Every update starts from equal weights, because rounding that feeds back through spikes is not tested here.

    Tolerances: of a loss, absolute; of a gradient, relative to its norm; of parameters, absolute and relative.
    """
    loss, error, absolute, relative = tolerance
    for step, (inputs, target) in enumerate(batches):
        found, wanted = engine.train_batch(inputs, target, rate), reference.train_batch(inputs, target, rate)
        assert found == pytest.approx(wanted, rel=1e-5, abs=loss)
        gradients = engine.gradients()
        assert gradients.keys() == reference.gradients().keys()
        whole = np.sqrt(sum(float(np.square(g).sum()) for g in reference.gradients().values()))
        for name, gradient in reference.gradients().items():
            # Terms of a parameter shared by many neurons may cancel; the error of the sum is that of its terms.
            most = error * max(np.linalg.norm(gradient), 0.05 * whole)
            assert np.linalg.norm(gradients[name] - gradient) <= most, (step, name)
        updated, parameters = engine.get_parameters(), reference.get_parameters()
        assert updated.keys() == parameters.keys()
        for name, value in parameters.items():
            np.testing.assert_allclose(updated[name], value, atol=absolute, rtol=relative, err_msg=name)
        engine.set_parameters(parameters)
    assert_same_optimizer(engine, reference)
