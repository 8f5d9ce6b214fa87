"""Data that the host streams before a training step."""

import pytest
from poplar_projects import project


@pytest.mark.parametrize("name", ["recurrent", "exact several inputs", "drop"])
def test_the_plan_knows_the_bytes_that_the_emulator_counts(name):
    case = project(name)
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 0.01)
    streamed = sum(step["bytes_host"] for step in engine.profile()["emulator"]["steps"])
    assert case.plan.host_bytes == streamed > 0
    assert case.plan.host_seconds == streamed / 8e9
