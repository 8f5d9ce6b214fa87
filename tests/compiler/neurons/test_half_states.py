"""Neurons whose states are float16: which values are rounded, and their adjoint compared with autograd."""

import numpy as np
import pytest
from neuron_oracles import Case, relative_error, run_kernel, run_torch
from test_adjoint import MODELS, VARIED

from snnc.compiler.errors import EquationError
from snnc.compiler.lowering.halves import with_half_states
from snnc.compiler.neurons.adjoint import derive_kernel
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.library import LIF
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.plain_data import decoded_fields, encoded_fields
from snnc.compiler.neurons.rounded_values import float16_values
from snnc.compiler.neurons.surrogates.library import atan

STATEFUL = {name: model for name, model in MODELS.items() if model.states}


@pytest.mark.representative(*VARIED)
@pytest.mark.parametrize("name", STATEFUL)
def test_the_adjoint_is_that_of_autograd_through_a_rounding_with_derivative_1(name):
    model = with_half_states(STATEFUL[name])
    case, kernel = Case(model, dtype=np.float32), derive_kernel(model, atan(), model.parameters)
    outputs, gradients = run_kernel(kernel, case)
    wanted, expected = run_torch(case, atan(), model.parameters)
    np.testing.assert_allclose(outputs, wanted, rtol=2**-10, atol=2**-20)
    assert relative_error(gradients, expected) < 1e-3


def lif_in_float16(currents, beta, threshold, at_once):
    """A LIF whose membrane is a NumPy array of float16, so that every assignment to it rounds; arithmetic is float32."""
    f, v = np.float32, np.zeros(currents.shape[1], np.float16)
    spikes, membranes = [], []
    for current in currents:
        fired = (v.astype(f) > threshold).astype(f)
        v = (f(beta) * v.astype(f) + current - (0 if at_once else fired * f(threshold))).astype(np.float16)
        fired = (v.astype(f) > threshold).astype(f)
        if at_once:
            v = (v.astype(f) - fired * f(threshold)).astype(np.float16)
        spikes.append(fired)
        membranes.append(v.astype(f))
    return np.array(spikes), np.array(membranes)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_state_is_a_variable_of_type_float16(at_once):
    """The threshold reads the rounded membrane, also if the reset follows in the same step."""
    model = with_half_states(LIF(beta=0.9, threshold=1.0, reset_delay=not at_once))
    currents = np.random.default_rng(2).normal(0.2, 0.4, (200, 64)).astype(np.float32)
    case = Case(model, ("s", "v"), steps=200)
    case.inputs, case.parameters = [currents[:, None]], [np.float32(p) for p in model.parameters.values()]
    case.initial, case.d_final = [np.zeros((1, 64), np.float32)], [np.zeros((1, 64), np.float32)]
    case.d_outputs = [np.zeros((200, 1, 64), np.float32)] * 2
    (spikes, membranes), _ = run_kernel(derive_kernel(model, atan(), (), ("s", "v")), case)
    wanted = lif_in_float16(currents, 0.9, np.float32(1.0), at_once)
    np.testing.assert_array_equal(spikes[:, 0], wanted[0])
    np.testing.assert_array_equal(membranes[:, 0], wanted[1])
    assert spikes.any()


def test_rounding_is_kept_in_the_cache_of_kernels():
    kernel = derive_kernel(with_half_states(LIF()), atan())
    data = encoded_fields(kernel)
    assert decoded_fields(Kernel, data, "the kernel") == kernel
    assert "float16(" in data["forward"]


def test_values_that_are_float16_are_stored_unchanged():
    squared = neuron("own", states={"v": 0}, equations="v = v + i\ny = v*v\nv = v - detach(spike(v - 1))", output="y")
    kernel = derive_kernel(with_half_states(squared), atan())
    assert (kernel.history, len(kernel.saved)) == ((), 1)
    assert set(float16_values(kernel)) == set(kernel.saved)
    assert float16_values(derive_kernel(squared, atan())) == {}


def test_users_cannot_write_the_rounding():
    with pytest.raises(EquationError, match="'float16' is unknown"):
        neuron("own", states={"v": 0}, equations="v = float16(v + i)\ns = spike(v - 1)")
