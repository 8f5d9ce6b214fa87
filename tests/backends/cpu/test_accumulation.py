"""Updates whose samples are run in parts, compared with updates of all samples at once and with the reference."""

import numpy as np
import pytest
from cpu_projects import data, opened, parts_of
from nets import learnable

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.errors import TrainingOptionError
from snnc.backends.session import BackendSession
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower

BATCH = 7


@pytest.mark.representative("mse_count:0.8,0.1")
@pytest.mark.parametrize("loss", ["ce_mean_membrane", "mse_count:0.8,0.1"])
def test_an_update_in_parts_is_that_of_all_samples(loss):
    program = lower(learnable(np.random.default_rng(3)), loss=parse_loss(loss), optimizer=SGD(1e-2, 0.9), loss_output="y")
    inputs, labels = data(program, 9, BATCH)
    reference = ReferenceEngine(program)
    wanted = reference.train_batch(inputs, labels, 1e-2)
    with opened(program, threads=3) as engine:
        start = engine.get_parameters()
        # The second part is smaller than the number of threads, and the third larger than the first.
        for bounds in ((), (3, 4), (1, 2, 3)):
            engine.set_parameters(start)
            found = engine.train_parts(iter(parts_of(inputs, labels, *bounds)), BATCH, 1e-2)
            assert found == pytest.approx(wanted, rel=1e-5)
            for name, gradient in reference.gradients().items():
                np.testing.assert_allclose(engine.gradients()[name], gradient, atol=1e-4 * np.abs(gradient).max(), err_msg=name)
            if not bounds:
                for name, value in reference.get_parameters().items():
                    np.testing.assert_allclose(engine.get_parameters()[name], value, atol=1e-5, err_msg=name)
        again = ReferenceEngine(program)
        assert again.train_parts(parts_of(inputs, labels, 2, 5), BATCH, 1e-2) == pytest.approx(wanted, rel=1e-5)
        for name, value in reference.get_parameters().items():
            np.testing.assert_allclose(again.get_parameters()[name], value, atol=1e-5, err_msg=name)


def test_what_a_broken_update_left_is_forgotten():
    program = lower(learnable(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), loss_output="y")
    inputs, labels = data(program, 9, BATCH)

    def broken():
        yield parts_of(inputs, labels, 3)[0]
        raise KeyboardInterrupt

    with opened(program) as engine:
        engine.train_batch(inputs, labels, 0.0)
        wanted = engine.gradients()
        with pytest.raises(KeyboardInterrupt):
            engine.train_parts(broken(), BATCH, 0.0)
        engine.train_parts(parts_of(inputs, labels, 3), BATCH, 0.0)
        for name, gradient in engine.gradients().items():
            np.testing.assert_allclose(gradient, wanted[name], atol=1e-5 * np.abs(wanted[name]).max())


def test_fitting_in_parts_learns_what_fitting_at_once_does_and_wrong_numbers_are_refused():
    program = lower(learnable(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), loss_output="y")
    inputs, labels = data(program, 9, 20)
    x = {info.label: np.moveaxis(inputs[info.id], 1, 0) for info in program.inputs}
    found = []
    for accumulate in (1, 3):
        session = BackendSession(ReferenceEngine(program, np.float64), program)
        session.fit(x, labels, batch=8, epochs=2, accumulate=accumulate)
        found.append(session.state_dict())
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, atol=1e-9)
    with pytest.raises(TrainingOptionError, match="accumulate is 0; it must be a whole number of 1 or more"):
        session.fit(x, labels, accumulate=0)
    fixed = BackendSession(type("Fixed", (ReferenceEngine,), {"batch": 8})(program), program)
    fixed.engine.batch = 8
    with pytest.raises(TrainingOptionError, match="support it"):
        fixed.fit(x, labels, accumulate=2)
