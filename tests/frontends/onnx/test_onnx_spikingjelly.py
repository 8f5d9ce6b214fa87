"""Forms of SpikingJelly's neurons: resets to a value, leaks after the reset, parallel neurons, states lost in an export."""

import numpy as np
import pytest
from onnx import helper
from onnx_files import File
from simulate import simulate

from snnc.compiler.ir.graph import Population
from snnc.frontends.common.recognise import recognise
from snnc.frontends.onnx.errors import OnnxError, StateLossError
from snnc.frontends.onnx.load import load_onnx

ort = pytest.importorskip("onnxruntime")

STEPS, BATCH, SIZE, NEURONS = 8, 3, 6, 5


def runtime(path, feeds):
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)


def pulses(seed=0):
    return (np.random.default_rng(seed).random((STEPS, BATCH, SIZE)) < 0.4).astype(np.float32)


def weights(seed=1, scale=1.5):
    rng = np.random.default_rng(seed)
    return (scale * rng.normal(0, 1, (NEURONS, SIZE))).astype(np.float32), (0.3 * rng.normal(0, 1, NEURONS)).astype(np.float32)


def charged(f, v, x, tau, reset, decayed):
    """LIFNode's charge: the input is divided by tau with the leak (decay_input=True), or added whole."""
    gap = v if reset in (None, 0.0) else f("Sub", v, reset)
    if decayed:
        return f("Add", v, f("Div", f("Sub", x, gap), tau))
    return f("Add", f("Sub", v, f("Div", gap, tau)), x)


def whole(path, tau, reset, decayed, threshold=0.8):
    f = File()
    w, b = weights()
    v, rows = f.const(np.full((BATCH, NEURONS), reset or 0.0)), []
    for t in range(STEPS):
        v = charged(f, v, f("Gemm", f("Gather", "x", np.array(t), axis=0), w, b, transB=1), tau, reset, decayed)
        z = f("Cast", f("GreaterOrEqual", f("Sub", v, threshold), 0.0), to=1)
        taken = f("Sub", v, f("Mul", z, threshold))
        v = taken if reset is None else f("Add", f("Mul", f("Sub", 1.0, z), v), f("Mul", z, reset))
        rows.append(z)
    f.stack(rows, "y")
    return f.save(path, {"x": (STEPS, BATCH, SIZE)}, ["y"])


@pytest.mark.parametrize("decayed", [True, False])
@pytest.mark.parametrize("reset", [None, 0.0, -0.4])
def test_a_leaky_neuron_is_recognised_with_its_reset_and_its_leak(tmp_path, reset, decayed):
    tau = 1.7
    path = whole(tmp_path / "lif.onnx", tau, reset, decayed)
    graph, x = load_onnx(path), pulses()
    (wanted,) = runtime(path, {"x": x})
    assert 0 < wanted.mean() < 1
    np.testing.assert_array_equal(simulate(graph, {"x": x})["y"], wanted)
    (population,) = [p for _, p in graph.of_type(Population)]
    facts = recognise(population.model, population.parameters)
    assert facts is not None
    assert facts.name == population.model.name == "LIF"
    assert facts.compare == ">="
    np.testing.assert_allclose(facts.decay, 1 - 1 / tau, rtol=1e-5)
    np.testing.assert_allclose(facts.gain, 1 / tau if decayed else 1.0, rtol=1e-5)
    np.testing.assert_allclose(facts.drive, (reset or 0.0) / tau, atol=1e-6)
    assert facts.reset == ("subtract" if reset is None else "value" if reset else facts.reset)
    assert facts.reset in ("subtract", "zero", "value")
    if reset:
        np.testing.assert_allclose(facts.v_reset, reset, rtol=1e-6)


def test_a_parallel_neuron_is_refused_and_named(tmp_path):
    f = File()
    mixing = np.random.default_rng(2).normal(0, 1, (STEPS, STEPS)).astype(np.float32)
    flat = f("Reshape", "x", np.array([STEPS, BATCH * SIZE]))
    h = f("Gemm", mixing, flat, np.full((STEPS, 1), -1.0))
    z = f("Cast", f("GreaterOrEqual", h, 0.0), to=1)
    f.nodes.append(identity(f("Reshape", z, np.array([STEPS, BATCH, SIZE])), "y"))
    with pytest.raises(OnnxError, match=r"SNNC-E210: .* parallel spiking neuron"):
        load_onnx(f.save(tmp_path / "psn.onnx", {"x": (STEPS, BATCH, SIZE)}, ["y"]))


def identity(value, name):
    return helper.make_node("Identity", [value], [name])


def test_a_step_whose_state_stays_in_the_module_is_refused_with_what_to_do(tmp_path):
    f = File()
    w, b = weights()
    v = f("Div", f("Gemm", "x", w, b, transB=1), 2.0)
    z = f("Cast", f("GreaterOrEqual", f("Sub", v, 1.0), 0.0), to=1)
    f.nodes.append(identity(z, "y"))
    with pytest.raises(StateLossError, match=r"SNNC-E220: .* Export the whole loop over time, or a single step with its states"):
        load_onnx(f.save(tmp_path / "lost.onnx", {"x": (BATCH, SIZE)}, ["y"]))


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("divisor", [STEPS, None])
def test_spikes_that_are_added_up_from_zero_for_an_input_without_time_are_a_readout(tmp_path, order, divisor):
    f = File()
    w, b = weights()
    v, y = f.const(np.zeros((BATCH, NEURONS))), 0.0
    for _ in range(STEPS):
        v = charged(f, v, f("Gemm", "x", w, b, transB=1), 2.0, None, True)
        z = f("Cast", f("GreaterOrEqual", f("Sub", v, 1.0), 0.0), to=1)
        v = f("Sub", v, z)
        y = f("Add", *((y, z) if order == 0 or y != 0.0 else (z, y)))
    f.nodes.append(identity(y if divisor is None else f("Div", y, float(divisor)), "y"))
    path = f.save(tmp_path / "rate.onnx", {"x": (BATCH, SIZE)}, ["y"])
    graph, x = load_onnx(path), pulses()[0]
    (wanted,) = runtime(path, {"x": x})
    assert wanted.any()
    np.testing.assert_allclose(simulate(graph, {"x": x})["y"], wanted, atol=1e-6)
    assert graph.steps == STEPS
