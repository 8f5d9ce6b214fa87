"""Time is re-rolled from dataflow, for any names, order, form and number of steps."""

import cProfile
import itertools
import pstats

import numpy as np
import onnxruntime
import pytest
from onnx_files import File, leaky
from simulate import simulate
from wide import sampled

from snnc.compiler.ir.graph import Linear, Output, Population
from snnc.frontends.onnx.errors import NoTimeError, TimeMixingError, TimeVaryingError
from snnc.frontends.onnx.load import load_onnx

F = np.float32


def drawn(rng, shape):
    return rng.normal(0, 0.7, shape).astype(F)


def random_network(rng, f, steps, batch):
    """Unroll a random network; return its outputs' names and a function that computes them."""
    sizes = [int(n) for n in rng.integers(3, 7, rng.integers(2, 5))]
    weights = [drawn(rng, (b, a)) for a, b in itertools.pairwise(sizes)]
    names = [f.const(w) for w in weights]
    recurrent = [drawn(rng, (n, n)) if rng.random() < 0.5 else None for n in sizes[1:]]
    rec_names = [None if r is None else f.const(r) for r in recurrent]
    beta = [F(b) for b in rng.uniform(0.5, 0.95, len(weights))]
    zero = bool(rng.random() < 0.5)
    mem = [f.const(np.zeros((batch, n), F)) for n in sizes[1:]]
    spk = [f.const(np.zeros((batch, n), F)) for n in sizes[1:]]
    spikes, membranes = [], []
    for t in range(steps):
        value = f("Gather", "x", np.array(t), axis=0)
        for k, w in enumerate(names):
            current = f("Gemm", value, w, transB=1)
            if rec_names[k]:
                current = f("Add", current, f("Gemm", spk[k], rec_names[k], transB=1))
            if zero:
                reset = f("Cast", f("Greater", f("Sub", mem[k], F(1)), F(0)), to=1)
                mem[k] = f("Add", f("Mul", beta[k], f("Mul", f("Sub", F(1), reset), mem[k])), current)
                spk[k] = f("Cast", f("Greater", f("Sub", mem[k], F(1)), F(0)), to=1)
            else:
                spk[k], mem[k] = leaky(f, current, mem[k], beta[k], F(1))
            value = spk[k]
        spikes.append(value)
        membranes.append(mem[-1])
    f.stack(spikes, "spk")
    f.stack(membranes, "mem")

    def run(x):
        m, s, out = [np.zeros((batch, n), F) for n in sizes[1:]], [np.zeros((batch, n), F) for n in sizes[1:]], []
        for t in range(steps):
            value = x[t]
            for k, w in enumerate(weights):
                current = value @ w.T
                if recurrent[k] is not None:
                    current = current + s[k] @ recurrent[k].T
                r = (m[k] - 1 > 0).astype(F)
                m[k] = beta[k] * ((1 - r) * m[k]) + current if zero else beta[k] * m[k] + current - r
                s[k] = (m[k] - 1 > 0).astype(F)
                value = s[k]
            out.append((value, m[-1]))
        return np.stack([o[0] for o in out]), np.stack([o[1] for o in out])

    return sizes, run


@pytest.mark.parametrize("seed", sampled(range(25), 3))
def test_random_networks_under_random_names_and_order(seed, tmp_path):
    rng = np.random.default_rng(seed)
    steps, batch = int(rng.integers(4, 10)), int(rng.integers(2, 5))
    f = File(rng, initializers=bool(rng.random() < 0.5))
    sizes, run = random_network(rng, f, steps, batch)
    path = f.save(tmp_path / "m.onnx", {"x": [steps, batch, sizes[0]]}, ["spk", "mem"], shuffle=True)
    graph = load_onnx(path)
    x = rng.normal(0, 1.5, (steps, batch, sizes[0])).astype(F)
    found = simulate(graph, {"x": x})
    spikes, membranes = run(x)
    np.testing.assert_array_equal(found["spk"], spikes)
    np.testing.assert_allclose(found["mem"], membranes, atol=1e-5)
    populations = [p for _, p in graph.of_type(Population)]
    assert [p.model.name for p in populations] == ["LIF"] * (len(sizes) - 1)
    assert all(set(p.model.states) == {"v"} for p in populations)


def one_layer(f, steps, batch=2, read=None):
    """Unroll one layer; return its spikes and membranes of all steps."""
    w = f.const(drawn(np.random.default_rng(1), (3, 4)))
    mem, values = f.const(np.zeros((batch, 3), F)), []
    for t in range(steps):
        spike, mem = leaky(f, f("Gemm", f("Gather", "x", np.array(t if read is None else read(t)), axis=0), w, transB=1), mem)
        values.append((spike, mem))
    return values


@pytest.mark.parametrize("readout", ["last", "sum", "mean", "max", "all"])
def test_readouts(readout, tmp_path):
    f = File()
    membranes = [m for _, m in one_layer(f, 6)]
    if readout == "last":
        f("Identity", membranes[-1])
        f.nodes[-1].output[0] = "y"
    elif readout == "all":
        f.stack(membranes, "y", axis=1)
    elif readout == "sum":
        total = membranes[0]
        for m in membranes[1:]:
            total = f("Add", total, m)
        f("Identity", total)
        f.nodes[-1].output[0] = "y"
    else:
        f.stack(membranes, "stack")
        f("ReduceMean" if readout == "mean" else "ReduceMax", "stack", axes=[0], keepdims=0)
        f.nodes[-1].output[0] = "y"
    graph = load_onnx(f.save(tmp_path / "m.onnx", {"x": [6, 2, 4]}, ["y"]))
    output = graph.operation("y")
    assert isinstance(output, Output)
    assert output.readout == readout
    x = np.random.default_rng(0).normal(0, 1, (6, 2, 4)).astype(F)
    ort = pytest.importorskip("onnxruntime")
    (wanted,) = ort.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"x": x})
    np.testing.assert_allclose(simulate(graph, {"x": x})["y"], wanted, atol=1e-5)


def test_the_number_of_neurons_may_equal_the_number_of_steps(tmp_path):
    f = File()
    f.stack([s for s, _ in one_layer(f, 3)], "y")
    graph = load_onnx(f.save(tmp_path / "m.onnx", {"x": [3, 2, 4]}, ["y"]))
    assert graph.operation("y").layout.time_axis == 0


@pytest.mark.parametrize(
    ("read", "error"),
    [(lambda t: 5 - t, TimeMixingError), (lambda t: min(t + 1, 5), TimeMixingError), (lambda t: 2 * t % 6, TimeMixingError)],
    ids=["reversed", "future", "strided"],
)
def test_sequences_that_are_not_read_in_order_are_refused(read, error, tmp_path):
    f = File()
    f.stack([s for s, _ in one_layer(f, 6, read=read)], "y")
    with pytest.raises((error, TimeVaryingError)):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": [6, 2, 4]}, ["y"]))


def test_a_parameter_that_changes_in_one_late_step_is_refused(tmp_path):
    f = File()
    w, mem, spikes = f.const(np.eye(3, dtype=F)), f.const(np.zeros((2, 3), F)), []
    for t in range(9):
        spike, mem = leaky(f, f("Gemm", f("Gather", "x", np.array(t), axis=0), w, transB=1), mem, beta=0.9 if t != 6 else 0.8)
        spikes.append(spike)
    f.stack(spikes, "y")
    with pytest.raises(TimeVaryingError, match="parameter"):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": [9, 2, 3]}, ["y"]))


def test_a_last_step_that_compares_with_a_state_instead_of_the_threshold_is_refused(tmp_path):
    f = File()
    mem, first, spikes = f.const(np.zeros((2, 3), F)), None, []
    for t in range(6):
        spike, mem = leaky(f, f("Gather", "x", np.array(t), axis=0), mem, threshold=1.0 if t < 5 else first)
        first = first or mem
        spikes.append(spike)
    f.stack(spikes, "y")
    with pytest.raises(TimeVaryingError, match="step 5"):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": [6, 2, 3]}, ["y"]))


def test_alternating_steps_are_refused(tmp_path):
    f = File()
    w, mem, values = f.const(np.eye(3, dtype=F)), f.const(np.zeros((2, 3), F)), []
    for t in range(8):
        current = f("Gemm", f("Gather", "x", np.array(t), axis=0), w, transB=1)
        mem = f("Tanh", f("Add", mem, current)) if t % 2 else f("Add", current, f("Mul", 0.5, mem))
        values.append(mem)
    f.stack(values, "y")
    with pytest.raises(TimeVaryingError):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": [8, 2, 3]}, ["y"]))


def test_two_steps_are_not_enough(tmp_path):
    f = File()
    f.stack([s for s, _ in one_layer(f, 2)], "y")
    with pytest.raises(NoTimeError, match="2 time steps"):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": [2, 2, 4]}, ["y"]))


def test_initial_states_of_the_file_are_kept(tmp_path):
    f = File()
    start = np.array([0.5, -0.25, 2.0], F)
    mem, values = f.const(np.tile(start, (2, 1))), []
    for t in range(5):
        mem = f("Add", f("Mul", 0.5, mem), f("Gather", "x", np.array(t), axis=0))
        values.append(mem)
    f.stack(values, "y")
    graph = load_onnx(f.save(tmp_path / "m.onnx", {"x": [5, 2, 3]}, ["y"]))
    (population,) = [p for _, p in graph.of_type(Population)]
    np.testing.assert_array_equal(population.initial["v"], start)


PARTS = {
    "one row": [(2, 1, 2)],
    "rows": [(2, 1, 3)],
    "one row of one column": [(3, 0, 1), (2, 2, 3)],
    "one column of rows": [(2, 1, 3), (3, 2, 3)],
}
"""Slices of a sequence [time, batch, rows, columns]: axis, first index and index after the last."""


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_sequence_is_a_part_of_each_step(part, batch_first, tmp_path):
    steps, rng, f = 6, np.random.default_rng(3), File()
    x = rng.normal(0, 1.5, (2, steps, 3, 4) if batch_first else (steps, 2, 3, 4)).astype(F)
    sequence, read = "x", x
    for axis, start, stop in PARTS[part]:
        sequence = f("Slice", sequence, np.array([start]), np.array([stop]), np.array([axis]))
        read = np.take(read, range(start, stop), axis)
    weight = f.const(rng.normal(0, 0.9, (5, read[0, 0].size)).astype(F))
    mem, spikes = f.const(np.zeros((2, 5), F)), []
    for t in range(steps):
        step = f("Flatten", f("Gather", sequence, np.array(t), axis=int(batch_first)))
        spike, mem = leaky(f, f("Gemm", step, weight, transB=1), mem)
        spikes.append(spike)
    f.stack(spikes, "y")
    path = f.save(tmp_path / "m.onnx", {"x": list(x.shape)}, ["y"])
    (expected,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    assert expected.any()
    np.testing.assert_array_equal(simulate(load_onnx(path), {"x": x})["y"], expected)


def test_a_product_over_the_whole_sequence_is_pushed_into_the_step(tmp_path):
    f = File()
    hoisted = f("Add", f("MatMul", "x", drawn(np.random.default_rng(0), (4, 3))), np.ones(3))
    mem, values = f.const(np.zeros((2, 3), F)), []
    for t in range(5):
        spike, mem = leaky(f, f("Gather", hoisted, np.array(t), axis=0), mem)
        values.append(spike)
    f.stack(values, "y")
    graph = load_onnx(f.save(tmp_path / "m.onnx", {"x": [5, 2, 4]}, ["y"]))
    (linear,) = [op for _, op in graph.of_type(Linear)]
    assert linear.weight.shape == (3, 4)
    np.testing.assert_array_equal(linear.bias, np.ones(3))


def large(path, steps):
    """Write 70-26 recurrent-20, unrolled."""
    rng, f, batch = np.random.default_rng(0), File(), 4
    w1, wr, w2 = (f.const(rng.normal(0, 0.1, s).astype(F)) for s in ((26, 70), (26, 26), (20, 26)))
    b1, b2 = f.const(np.zeros(26, F)), f.const(np.zeros(20, F))
    mem, spk, out = f.const(np.zeros((batch, 26), F)), f.const(np.zeros((batch, 26), F)), f.const(np.zeros((batch, 20), F))
    spikes = []
    for t in range(steps):
        current = f("Gemm", f("Gather", "x", np.array(t), axis=0), w1, b1, transB=1)
        spk, mem = leaky(f, f("Add", current, f("Gemm", spk, wr, b1, transB=1)), mem)
        spike, out = leaky(f, f("Gemm", spk, w2, b2, transB=1), out)
        spikes.append(spike)
    f.stack(spikes, "y")
    return f.save(path, {"x": [steps, batch, 70]}, ["y"])


def test_the_work_of_an_import_is_linear_in_the_number_of_steps(tmp_path):
    calls = {}
    for steps in (40, 160):
        path = large(tmp_path / f"{steps}.onnx", steps)
        profile = cProfile.Profile()
        graph = profile.runcall(load_onnx, path)
        calls[steps] = pstats.Stats(profile).total_calls
        assert [p.model.name for _, p in graph.of_type(Population)] == ["LIF", "LIF"]
    assert calls[160] < 4.2 * calls[40]
