"""Single steps on an engine for whole sequences equal the steps of the sequence."""

import numpy as np
import pytest
from nets import feedback, recurrent, skip

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.errors import NoStepwiseError
from snnc.backends.session import BackendSession
from snnc.compiler.lowering.lower import lower


class Sequences:
    """The reference with a fixed number of steps and samples, as a machine has them, and no single steps."""

    def __init__(self, program, steps, batch):
        self.inner, self.steps, self.batch = ReferenceEngine(program), steps, batch

    def forward(self, inputs, initial):
        assert all(array.shape[:2] == (self.steps, self.batch) for array in inputs.values())
        return self.inner.forward(inputs, initial)

    def close(self):
        pass


@pytest.mark.parametrize("net", [recurrent, skip, feedback])
def test_steps_of_a_machine_equal_those_of_the_reference(net):
    program = lower(net(np.random.default_rng(0)), steps=6)
    rng = np.random.default_rng(2)
    inputs = {i.label: (rng.random((6, 3, *i.shape)) < 0.5).astype(np.float32) for i in program.inputs}
    stepping, machine = BackendSession(ReferenceEngine(program), program), BackendSession(Sequences(program, 6, 4), program)
    for _ in range(2):
        for t in range(6):
            given = {name: array[t] for name, array in inputs.items()}
            ours, theirs = machine.step(given), stepping.step(given)
            for name, values in theirs.items():
                np.testing.assert_allclose(ours[name], values, rtol=1e-6, atol=1e-6)
        with pytest.raises(NoStepwiseError, match="all 6 steps"):
            machine.step(given)
        machine.reset()
        stepping.reset()
    with pytest.raises(NoStepwiseError, match="5 samples"):
        machine.reset(5)
