"""Outputs that summarise or slice a sequence, in the forms found in files, compared with ONNX Runtime."""

import numpy as np
import pytest
from onnx_files import File, leaky

import snnc
from snnc.compiler.errors import InvalidValueError
from snnc.compiler.ir.graph import Graph, Input, Linear, Output
from snnc.compiler.ir.verify import verify
from snnc.frontends.onnx.errors import ReadoutError, TimeMixingError
from snnc.frontends.onnx.load import load_onnx
from snnc.frontends.onnx.writer.write import write_onnx

T, B, N = 8, 2, 4
F = np.float32


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(0.4, 1.0, shape).astype(F)


def compare(path, feeds):
    """Run a file with snnc and with ONNX Runtime; return the graph."""
    ort = pytest.importorskip("onnxruntime")
    graph = load_onnx(path)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # it folds Pad into MaxPool, whose padding is no zero
    session = ort.InferenceSession(str(path), options)
    with snnc.compile(graph, target="reference") as ours:
        found = ours.run(feeds)
    for output, value in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        assert found[output.name].shape == value.shape
        np.testing.assert_allclose(found[output.name], value, rtol=0, atol=1e-5 * max(1, np.abs(value).max()))
    return graph


def network(steps=T):
    """Return a file under construction and the membranes and spikes of all steps."""
    f, mem, mems, spikes = File(), np.zeros((B, N), F), [], []
    weight = drawn(N, 5, seed=1)
    for t in range(steps):
        spike, mem = leaky(f, f("Gemm", f("Gather", "x", np.array(t), axis=0), weight, transB=1), mem, threshold=0.7)
        mems.append(mem)
        spikes.append(f("Mul", spike, np.float32(1.0)))
    return f, mems, spikes


def saved(f, path, value):
    f.nodes[-1].output[0] = "y"
    return f.save(path / "m.onnx", {"x": [T, B, 5]}, ["y"])


def stacked(f, values):
    return f("Concat", *(f("Unsqueeze", v, np.array([0])) for v in values), axis=0)


def folded(f, op, values):
    total = values[0]
    for v in values[1:]:
        total = f(op, total, v)
    return total


READOUTS = {
    "minimum": (lambda f, m, s: f("ReduceMin", stacked(f, m), axes=[0], keepdims=0), ("min", 0, None)),
    "mean over the last half": (lambda f, m, s: f("ReduceMean", stacked(f, m[4:]), axes=[0], keepdims=0), ("mean", 4, None)),
    "sum over the first steps": (lambda f, m, s: f("ReduceSum", stacked(f, s[:3]), np.array([0]), keepdims=0), ("sum", 0, 3)),
    "sum of some steps, one by one": (lambda f, m, s: folded(f, "Add", s[3:]), ("sum", 3, None)),
    "maximum, one by one": (lambda f, m, s: folded(f, "Max", m), ("max", 0, None)),
    "scaled sum": (lambda f, m, s: f("Mul", f("ReduceSum", stacked(f, m), np.array([0]), keepdims=0), np.float32(0.3)), ("sum", 0, None)),
    "outputs from a step on": (lambda f, m, s: f("Slice", stacked(f, m), np.array([3]), np.array([99]), np.array([0])), ("all", 3, None)),
    "outputs up to a step": (lambda f, m, s: f("Identity", stacked(f, m[:5])), ("all", 0, 5)),
    "mean over time and neurons": (lambda f, m, s: f("ReduceMean", stacked(f, s), axes=[0, 2], keepdims=0), ("mean", 0, None)),
    "last spike, which no other step computes": (lambda f, m, s: f("Identity", s[-1]), ("last", 0, None)),
    "last two": (lambda f, m, s: f("Add", m[-1], m[-2]), ("last", 0, None)),
    "a layer behind a mean": (
        lambda f, m, s: f("Gemm", f("ReduceMean", stacked(f, s), axes=[0], keepdims=0), drawn(3, N, seed=2), drawn(3), transB=1),
        ("last", 0, None),
    ),
}


@pytest.mark.parametrize("name", READOUTS)
def test_a_readout_is_what_the_file_computes(name, tmp_path):
    make, (readout, start, stop) = READOUTS[name]
    f, mems, spikes = network()
    make(f, mems, spikes)
    graph = compare(saved(f, tmp_path, None), {"x": drawn(T, B, 5, seed=3)})
    output = graph.operation("y")
    assert (output.readout, output.start, output.stop) == (readout, start, stop)


def test_a_window_of_steps_goes_out_and_comes_in_again(tmp_path):
    f, mems, _ = network()
    f("Slice", stacked(f, mems), np.array([2]), np.array([6]), np.array([0]))
    graph = load_onnx(saved(f, tmp_path, None))
    write_onnx(graph, tmp_path / "again.onnx")
    again = compare(tmp_path / "again.onnx", {"x": drawn(T, B, 5, seed=3)})
    assert again.operation("y") == graph.operation("y")


@pytest.mark.parametrize("order", [list(range(T))[::-1], [1, 0, *range(2, T)]])
def test_outputs_out_of_order_are_refused(order, tmp_path):
    f, mems, _ = network()
    f("Identity", stacked(f, [mems[t] for t in order]))
    with pytest.raises(TimeMixingError, match="in order"):
        load_onnx(saved(f, tmp_path, None))


def test_every_second_step_is_refused(tmp_path):
    f, mems, _ = network()
    f("Identity", stacked(f, mems[::2]))
    with pytest.raises((TimeMixingError, ReadoutError)):
        load_onnx(saved(f, tmp_path, None))


def test_a_reversed_input_is_refused(tmp_path):
    f, mem, mems = File(), np.zeros((B, 5), F), []
    for t in reversed(range(T)):
        _, mem = leaky(f, f("Gather", "x", np.array(t), axis=0), mem)
        mems.append(mem)
    f("Identity", stacked(f, mems))
    with pytest.raises(TimeMixingError, match="reversed"):
        load_onnx(saved(f, tmp_path, None))


@pytest.mark.parametrize("how", ["concat", "flatten", "layer behind", "batch in front"])
def test_steps_joined_along_the_batch_are_refused_with_advice(tmp_path, how):
    f, mems, _ = network()
    if how == "concat":
        f("Concat", *mems, axis=0)
    elif how == "batch in front":
        f("Reshape", f("Transpose", stacked(f, mems), perm=[1, 0, 2]), np.array([B * T, N]))
    else:
        f("Reshape", stacked(f, mems), np.array([T * B, N]))
    if how == "layer behind":
        f("Mul", f("Gemm", f.nodes[-1].output[0], drawn(3, N), transB=1), 0.5)
    with pytest.raises(ReadoutError, match=r"torch\.stack"):
        load_onnx(saved(f, tmp_path, None))


def test_a_layer_over_all_steps_is_refused_as_one(tmp_path):
    f, mems, _ = network()
    f("Gemm", f("Concat", *mems, axis=1), drawn(3, T * N), transB=1)
    with pytest.raises(TimeMixingError, match="layer over time"):
        load_onnx(saved(f, tmp_path, None))


def test_the_mean_of_the_whole_input_in_every_step_is_refused(tmp_path):
    f, mem, mems = File(), np.zeros((B, 5), F), []
    mean = f("ReduceMean", "x", axes=[0], keepdims=0)
    for t in range(T):
        _, mem = leaky(f, f("Sub", f("Gather", "x", np.array(t), axis=0), mean), mem)
        mems.append(mem)
    f("Identity", stacked(f, mems))
    with pytest.raises(TimeMixingError, match="consecutive steps"):
        load_onnx(saved(f, tmp_path, None))


def test_two_states_that_start_with_one_value_stay_apart(tmp_path):
    """In step 0 a fast and a slow trace of one current are one node of the file."""
    f, fast, slow, mems = File(), None, None, []
    for t in range(T):
        x = f("Gather", "x", np.array(t), axis=0)
        x = f("Gemm", x, drawn(N, 5, seed=1), transB=1)
        fast = x if fast is None else f("Add", f("Mul", 0.5, fast), x)
        slow = x if slow is None else f("Add", f("Mul", 0.9, slow), x)
        mems.append(f("Sub", slow, fast))
    f("Identity", stacked(f, mems))
    compare(saved(f, tmp_path, None), {"x": drawn(T, B, 5, seed=3)})


@pytest.mark.parametrize(("start", "stop", "steps"), [(-1, None, 4), (2, 2, 4), (4, None, 4), (0, 5, 4)])
def test_a_window_outside_the_sequence_is_refused(start, stop, steps):
    graph = Graph("w", steps)
    graph.add("x", Input((2,)))
    graph.add("l", Linear(np.eye(2, dtype=F)))
    graph.add("y", Output("mean", start=start, stop=stop))
    graph.connect("x", "l")
    graph.connect("l", "y")
    with pytest.raises(InvalidValueError, match="reads the steps"):
        verify(graph)
