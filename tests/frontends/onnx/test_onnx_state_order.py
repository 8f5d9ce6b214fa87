"""Single steps with states and outputs in any order and with any names: each output continues the state it is computed from."""

import itertools

import numpy as np
import pytest
from onnx_files import File, leaky
from wide import examples

import snnc
from snnc.frontends.onnx.errors import StatePairError
from snnc.frontends.onnx.load import load_onnx

ort = pytest.importorskip("onnxruntime")

T, B, N = 9, 2, 4
F = np.float32


def weights(seed, scale=0.9):
    return np.random.default_rng(seed).normal(0.3, scale, (N, N)).astype(F)


def two_leaky(f, states):
    s1, m1 = leaky(f, f("Gemm", "x", weights(1), transB=1), states[0], beta=0.8)
    s2, m2 = leaky(f, f("Gemm", s1, weights(2), transB=1), states[1])
    return s2, [m1, m2]


def two_synaptic(f, states):
    drive, new = "x", []
    for k in (0, 1):
        current = f("Add", f("Mul", 0.7, states[2 * k]), f("Gemm", drive, weights(3 + k), transB=1))
        reset = f("Cast", f("Greater", states[2 * k + 1], 1.0), to=1)
        membrane = f("Sub", f("Add", f("Mul", 0.8, states[2 * k + 1]), current), reset)
        drive = f("Cast", f("Greater", membrane, 1.0), to=1)
        new += [current, membrane]
    return drive, new


def recurrent(f, states):
    """Fed-back spikes, all to all."""
    fed = f("Gemm", states[0], weights(5, 0.4), transB=1)
    spike, membrane = leaky(f, f("Add", f("Gemm", "x", weights(6), transB=1), fed), states[1])
    return spike, [f("Identity", spike), membrane]


def one_to_one(f, states):
    """Fed-back spikes, each neuron's own; the reset reads the membrane."""
    fed = f("Mul", states[0], np.linspace(-0.5, 0.4, N))
    membrane = f("Add", f("Mul", 0.9, states[1]), f("Add", f("Gemm", "x", weights(7), transB=1), fed))
    membrane = f("Sub", membrane, f("Cast", f("Greater", states[1], 1.0), to=1))
    spike = f("Cast", f("Greater", f("Sub", membrane, 1.0), 0.0), to=1)
    return spike, [f("Identity", spike), membrane]


def adaptive(f, states):
    """Adaptive thresholds that follow the spikes."""
    membrane, threshold = states
    reset = f("Cast", f("Greater", f("Sub", membrane, f("Add", 1.0, threshold)), 0.0), to=1)
    grown = f("Add", f("Mul", 0.9, threshold), f("Mul", 0.3, reset))
    new = f("Sub", f("Add", f("Mul", 0.8, membrane), f("Gemm", "x", weights(8), transB=1)), reset)
    return f("Cast", f("Greater", f("Sub", new, f("Add", 1.0, grown)), 0.0), to=1), [new, grown]


def gated(f, states):
    """An LSTM cell: the cell goes through gates, the hidden value through weights."""
    cell, hidden = states
    gates = [f("Add", f("Gemm", "x", weights(9 + k), transB=1), f("Gemm", hidden, weights(20 + k), transB=1)) for k in range(4)]
    i, forget, o = (f("Sigmoid", g) for g in gates[:3])
    new = f("Add", f("Mul", forget, cell), f("Mul", i, f("Tanh", gates[3])))
    shown = f("Mul", o, f("Tanh", new))
    return f("Cast", f("Greater", shown, 0.1), to=1), [new, shown]


CASES = [(two_leaky, 2), (two_synaptic, 4), (recurrent, 2), (one_to_one, 2), (adaptive, 2), (gated, 2)]


def saved(path, make, count, order_in, order_out, names_in, names_out, shown_first=True):
    """Write `make` with state k read as ``names_in[k]`` and continued as ``names_out[k]``, both listed in the orders given."""
    f = File()
    spike, new = make(f, list(names_in))
    for value, name in zip([spike, *new], ["shown", *names_out], strict=True):
        f("Identity", value)
        f.nodes[-1].output[0] = name
    listed = [names_out[k] for k in order_out]
    outputs = ["shown", *listed] if shown_first else [*listed, "shown"]
    inputs = {"x": [B, N], **{names_in[k]: [B, N] for k in order_in}}
    return f.save(path / "m.onnx", inputs, outputs)


def check(path, pairs, start):
    """Compare with ONNX Runtime, which is fed back as `pairs` (input -> output) says."""
    x = np.random.default_rng(11).normal(0.6, 0.8, (T, B, N)).astype(F)
    session, states, rows = ort.InferenceSession(str(path)), dict(start), []
    names = [o.name for o in session.get_outputs()]
    for now in x:
        found = dict(zip(names, session.run(None, {"x": now, **states}), strict=True))
        states = {i: found[o] for i, o in pairs.items()}
        rows.append(found)
    expected = {n: np.stack([r[n] for r in rows]) for n in names}
    assert 0.05 < expected["shown"].mean() < 0.95
    graph = load_onnx(path)
    with snnc.compile(graph, target="reference", steps=T, batch=B) as ours:
        got = ours.run({"x": x}, initial={n: v for n, v in start.items() if n in graph.state_inputs})
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, atol=2e-5, err_msg=name)
    return graph


@pytest.mark.representative("misleading names-*")
@pytest.mark.parametrize(("make", "count"), CASES, ids=[c[0].__name__ for c in CASES])
@pytest.mark.parametrize("misleading", [False, True], ids=["plain names", "misleading names"])
def test_states_are_paired_by_what_they_are_computed_from(tmp_path, make, count, misleading):
    orders = list(itertools.permutations(range(count)))
    rng = np.random.default_rng(count)
    for trial in range(examples(2, 6)):
        order_in, order_out = (orders[int(rng.integers(len(orders)))] for _ in range(2))
        names_in = [f"s{k}" for k in range(count)]
        shift = 1 if misleading else 0
        names_out = [f"s{(k + shift) % count}_out" if misleading else f"value{k}" for k in range(count)]
        path = saved(tmp_path, make, count, order_in, order_out, names_in, names_out, shown_first=trial % 2 == 0)
        start = {n: rng.integers(0, 2, (B, N)).astype(F) for n in names_in}
        graph = check(path, dict(zip(names_in, names_out, strict=True)), start)
        assert not any("guess" in a for a in graph.assumptions)


def alike(f, states):
    """Two traces that are computed in the same way, each from both: nothing but names and places tells which is which."""
    first, second = states
    both = f("Add", f("Mul", 0.5, first), f("Mul", 0.3, second))
    low, high = f("Add", both, "x"), f("Sub", both, f("Mul", 0.5, "x"))
    return f("Cast", f("Greater", low, 0.4), to=1), [low, high]


def test_names_decide_where_the_computation_does_not(tmp_path):
    path = saved(tmp_path, alike, 2, (0, 1), (1, 0), ("a", "b"), ("a_out", "b_out"))
    graph = check(path, {"a": "a_out", "b": "b_out"}, {n: np.full((B, N), 0.25, F) for n in "ab"})
    assert not any("guess" in a for a in graph.assumptions)


def test_a_guess_by_position_is_said(tmp_path):
    path = saved(tmp_path, alike, 2, (0, 1), (0, 1), ("a", "b"), ("low", "high"))
    graph = check(path, {"a": "low", "b": "high"}, {n: np.full((B, N), 0.25, F) for n in "ab"})
    notes = [a for a in graph.assumptions if "guess" in a]
    assert len(notes) == 1
    assert "a -> low, b -> high" in notes[0]


def test_two_states_that_one_output_alone_could_continue_are_refused(tmp_path):
    f = File()
    spike, membrane = leaky(f, f("Add", "x", "trace"), "mem")
    for value, name in ((f("Reshape", spike, np.array([B * N])), "shown"), (membrane, "mem_out")):
        f("Identity", value)
        f.nodes[-1].output[0] = name
    path = f.save(tmp_path / "m.onnx", {n: [B, N] for n in ("x", "mem", "trace")}, ["shown", "mem_out"])
    with pytest.raises(StatePairError, match="mem, trace"):
        load_onnx(path)


def test_verify_feeds_the_same_pairs_back_in_onnx_runtime(tmp_path):
    path = saved(tmp_path, two_synaptic, 4, (2, 0, 3, 1), (1, 3, 0, 2), [f"s{k}" for k in range(4)], [f"value{k}" for k in range(4)])
    assert snnc.verify(path, steps=T).agree
