"""A single step whose membrane is an input although it follows from other states (snnTorch's Alpha)."""

import numpy as np
import pytest
from onnx_files import File

import snnc
from snnc.frontends.onnx.load import load_onnx

T, B, N = 7, 2, 5
F = np.float32


def alpha(path):
    f = File()
    reset = f("Cast", f("Greater", f("Sub", "mem", 0.3), 0.0), to=1)
    fast = f("Add", f("Mul", 0.9, "exc"), "x")
    slow = f("Sub", f("Mul", 0.6, "inh"), "x")
    mem = f("Sub", f("Mul", 1.7, f("Add", fast, slow)), f("Mul", reset, 0.3))
    f("Cast", f("Greater", f("Sub", mem, 0.3), 0.0), to=1)
    f.nodes[-1].output[0] = "spk"
    for value, name in ((fast, "exc_out"), (slow, "inh_out"), (mem, "mem_out")):
        f("Identity", value)
        f.nodes[-1].output[0] = name
    shapes = {n: [B, N] for n in ("x", "exc", "inh", "mem")}
    return f.save(path / "step.onnx", shapes, ["spk", "exc_out", "inh_out", "mem_out"])


def test_a_membrane_that_follows_from_currents_starts_where_the_caller_says(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    path = alpha(tmp_path)
    graph = load_onnx(path)
    assert set(graph.state_inputs) == {"exc", "inh", "mem"}
    rng = np.random.default_rng(2)
    x = rng.normal(0.2, 0.6, (T, B, N)).astype(F)
    start = {n: rng.normal(0.3, 0.5, (B, N)).astype(F) for n in ("exc", "inh", "mem")}
    session, states, rows = ort.InferenceSession(str(path)), dict(start), []
    for now in x:
        spikes, *new = session.run(None, {"x": now, **states})
        states = dict(zip(("exc", "inh", "mem"), new, strict=True))
        rows.append((spikes, new[-1]))
    with snnc.compile(graph, target="reference", steps=T, batch=B) as ours:
        found = ours.run({"x": x}, initial=start)
    assert 0.1 < np.mean([r[0] for r in rows]) < 0.9
    np.testing.assert_array_equal(found["spk"], [r[0] for r in rows])
    np.testing.assert_allclose(found["mem_out"], [r[1] for r in rows], atol=1e-5)
