"""Float16 states in a program for the CPU: the reference's numbers, also with float16 histories."""

import numpy as np
import pytest
from cpu_projects import opened
from half_projects import assert_same_as_the_reference
from nets import of_model, recurrent

import snnc
from snnc.compiler.neurons.library import CubaLIF

CASES = [
    (recurrent, ("states",), "float32"),
    (lambda random: of_model(random, CubaLIF(0.7, 0.9)), ("states", "history"), "float16"),
]


@pytest.mark.representative("*float16")
@pytest.mark.parametrize(("make", "half", "precision"), CASES)
def test_records_and_gradients_equal_those_of_the_reference(make, half, precision):
    assert_same_as_the_reference(opened, make, half, 2e-6, precision=precision)


def test_a_run_without_training_rounds_states_too():
    """Weights and inputs have few bits, so that every order of adding them gives the same sums."""
    net = snnc.Sequential(16, snnc.Dense(13), snnc.LIF(beta=0.9), snnc.Dense(4), snnc.LI(beta=0.9))
    x = (np.random.default_rng(0).random((20, 3, 16)) < 0.4).astype(np.float32)
    found, weights = {}, None
    for target, half in (("reference", None), ("reference", "states"), ("cpu", "states")):
        with snnc.compile(net, target=target, half=half) as session:
            weights = weights or {name: np.round(value * 64) / 64 for name, value in session.state_dict().items()}
            session.load_state_dict(weights)
            found[target, half] = session.run(x)["output"]
    np.testing.assert_array_equal(found["cpu", "states"], found["reference", "states"])
    assert (found["reference", None] != found["reference", "states"]).any()
