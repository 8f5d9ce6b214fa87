"""Convolutions, pooling and related operations in every form in a file, compared with ONNX Runtime."""

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_files import File, leaky
from simulate import simulate

from snnc.compiler.ir.graph import Add, Concat, Conv, Flatten, Input, Linear, Pool, Population, Reduce, Reshape
from snnc.frontends.onnx.load import load_onnx

F = np.float32
T, B = 4, 3


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(F)


def compare(path, feeds):
    ort = pytest.importorskip("onnxruntime")
    graph = load_onnx(path)
    session = ort.InferenceSession(str(path))
    found = simulate(graph, feeds)
    for output, value in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        assert found[output.name].shape == value.shape
        np.testing.assert_allclose(found[output.name], value, rtol=0, atol=1e-5 * max(1, np.abs(value).max()))
    return graph


def integrated(make, tmp_path, shape, form="unrolled"):
    """Integrate ``make(f, x_t)`` over time with a leak; compare and return the graph."""
    f = File()
    if form == "unrolled":
        mem, values = None, []
        for t in range(T):
            y = make(f, f("Gather", "x", np.array(t), axis=0))
            mem = y if mem is None else f("Add", f("Mul", 0.5, mem), y)
            values.append(mem)
    else:
        flat = make(f, f("Reshape", "x", np.array([T * B, *shape])))
        folded = f("Reshape", flat, f("Concat", np.array([T, B]), f("Shape", flat, start=1), axis=0))
        mem, values = None, []
        for t in range(T):
            y = f("Gather", folded, np.array(t), axis=0)
            mem = y if mem is None else f("Add", f("Mul", 0.5, mem), y)
            values.append(mem)
    f.stack(values, "y")
    path = f.save(tmp_path / "m.onnx", {"x": [T, B, *shape]}, ["y"])
    return compare(path, {"x": drawn(T, B, *shape, seed=9)})


LAYERS = {
    "conv 2d": ((2, 6, 5), lambda f, x: f("Conv", x, drawn(4, 2, 3, 3), drawn(4))),
    "stride and pads": ((2, 7, 5), lambda f, x: f("Conv", x, drawn(4, 2, 3, 2), strides=[2, 1], pads=[1, 0, 2, 1])),
    "dilation": ((2, 7, 9), lambda f, x: f("Conv", x, drawn(4, 2, 2, 3), dilations=[2, 3])),
    "groups": ((4, 5, 5), lambda f, x: f("Conv", x, drawn(8, 2, 3, 3), drawn(8), group=2)),
    "depthwise": ((3, 5, 5), lambda f, x: f("Conv", x, drawn(3, 1, 3, 3), group=3, pads=[1, 1, 1, 1])),
    "conv 1d": ((2, 9), lambda f, x: f("Conv", x, drawn(4, 2, 3), drawn(4), strides=[2], pads=[1, 1])),
    "same upper": ((2, 7, 6), lambda f, x: f("Conv", x, drawn(4, 2, 2, 3), auto_pad="SAME_UPPER", strides=[2, 2])),
    "same lower": ((2, 7, 6), lambda f, x: f("Conv", x, drawn(4, 2, 2, 3), auto_pad="SAME_LOWER")),
    "valid": ((2, 7, 6), lambda f, x: f("Conv", x, drawn(4, 2, 2, 3), auto_pad="VALID")),
    "one channel": ((1, 6, 6), lambda f, x: f("Conv", f("Relu", f("Conv", x, drawn(1, 1, 3, 3))), drawn(1, 1, 2, 2))),
    "a bias that is added": ((2, 5, 5), lambda f, x: f("Add", f("Conv", x, drawn(4, 2, 3, 3)), drawn(4, 1, 1))),
    "a constant that differs in space": ((2, 4, 4), lambda f, x: f("Add", f("Conv", x, drawn(4, 2, 3, 3)), drawn(4, 2, 2))),
    "max pooling": ((2, 6, 6), lambda f, x: f("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])),
    "max pooling with pads and dilation": (
        (2, 9, 9),
        lambda f, x: f("MaxPool", x, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], dilations=[2, 1]),
    ),
    "max pooling, ceil": ((2, 7, 6), lambda f, x: f("MaxPool", x, kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1)),
    "average pooling": ((2, 6, 6), lambda f, x: f("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])),
    "average pooling, stride 1": ((2, 6, 6), lambda f, x: f("AveragePool", x, kernel_shape=[3, 3])),
    "average pooling with pads": ((2, 6, 6), lambda f, x: f("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])),
    "average pooling that counts pads": (
        (2, 6, 6),
        lambda f, x: f("AveragePool", x, kernel_shape=[3, 3], pads=[1, 0, 1, 1], count_include_pad=1),
    ),
    "average pooling 1d": ((2, 8), lambda f, x: f("AveragePool", x, kernel_shape=[2], strides=[2])),
    "global average": ((2, 5, 4), lambda f, x: f("GlobalAveragePool", f("Conv", x, drawn(4, 2, 2, 2)))),
    "global maximum": ((2, 5, 4), lambda f, x: f("GlobalMaxPool", x)),
    "mean over space": ((2, 5, 4), lambda f, x: f("ReduceMean", f("Conv", x, drawn(4, 2, 2, 2)), axes=[2, 3], keepdims=0)),
    "sum over channels": ((2, 5, 4), lambda f, x: f("ReduceSum", x, np.array([1]), keepdims=0)),
    "folded normalisation": (
        (2, 5, 5),
        lambda f, x: f("BatchNormalization", f("Conv", x, drawn(4, 2, 3, 3)), drawn(4), drawn(4), drawn(4), np.abs(drawn(4)) + 0.1),
    ),
    "normalisation of the input": (
        (2, 5, 5),
        lambda f, x: f("BatchNormalization", x, drawn(2), drawn(2), drawn(2), np.abs(drawn(2)) + 0.1),
    ),
    "normalisation between pooling and dense": (
        (2, 4, 4),
        lambda f, x: f(
            "Gemm",
            f("Flatten", f("BatchNormalization", f("MaxPool", x, kernel_shape=[2, 2]), *(np.abs(drawn(2)) + 0.1 for _ in range(4)))),
            drawn(18, 3),
        ),
    ),
    "normalised product": (
        (2, 4),
        lambda f, x: f("BatchNormalization", f("Gemm", f("Flatten", x), drawn(8, 3)), *(np.abs(drawn(3)) + 0.1 for _ in range(4))),
    ),
    "flatten and dense": ((2, 4, 4), lambda f, x: f("Gemm", f("Flatten", f("Conv", x, drawn(4, 2, 3, 3))), drawn(16, 3), drawn(3))),
    "dense and reshape": (
        (1, 2, 3),
        lambda f, x: f("Conv", f("Reshape", f("Gemm", f("Flatten", x), drawn(6, 8)), np.array([-1, 2, 2, 2])), drawn(3, 2, 2, 2)),
    ),
    "concat of channels": (
        (2, 4, 4),
        lambda f, x: f("Conv", f("Concat", x, f("Conv", x, drawn(1, 2, 1, 1)), axis=1), drawn(2, 3, 2, 2)),
    ),
    "residual": ((2, 4, 4), lambda f, x: f("Add", f("Conv", x, drawn(2, 2, 3, 3), pads=[1, 1, 1, 1]), f("Conv", x, drawn(2, 2, 1, 1)))),
    "slice of channels": ((4, 4, 4), lambda f, x: f("Conv", f("Slice", x, np.array([1]), np.array([3]), np.array([1])), drawn(2, 2, 2, 2))),
    "slice of space": (
        (2, 4, 4),
        lambda f, x: f("Slice", f("Conv", x, drawn(3, 2, 2, 2)), np.array([1]), np.array([3]), np.array([3])),
    ),
    "channels that are halves": (
        (2, 4, 4),
        lambda f, x: f("Sub", *f("Split", f("Conv", x, drawn(6, 2, 2, 2)), axis=1, outputs=2)),
    ),
}


@pytest.mark.representative("*-over the whole sequence", "conv 2d-*", "max pooling-*")
@pytest.mark.parametrize("form", ["unrolled", "over the whole sequence"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_mean_what_onnx_runtime_computes(name, form, tmp_path):
    shape, make = LAYERS[name]
    integrated(make, tmp_path, shape, form)


def test_a_normalisation_is_folded_into_the_convolution_before_it(tmp_path):
    shape, make = LAYERS["folded normalisation"]
    graph = integrated(make, tmp_path, shape)
    assert [type(graph.operation(n)) for n in graph.names].count(Conv) == 1
    assert len(list(graph.of_type(Population))) == 1


def test_axes_of_size_one_survive(tmp_path):
    graph = integrated(LAYERS["one channel"][1], tmp_path, (1, 6, 6))
    assert graph.operation("x").shape == (1, 6, 6)
    assert not list(graph.of_type(Reshape))


def spiking(f, steps, batch, residual):
    """A small spiking network with convolutions, unrolled."""
    mem, spikes = [None, None, None], []
    w1, w2, w3 = (f.const(w) for w in (drawn(3, 1, 3, 3), drawn(3, 3, 3, 3), drawn(4, 27)))
    zeros = [f.const(np.zeros(s, F)) for s in ((batch, 3, 6, 6), (batch, 3, 6, 6), (batch, 4))]
    mem = list(zeros)
    for t in range(steps):
        x = f("Gather", "x", np.array(t), axis=0)
        s1, mem[0] = leaky(f, f("Conv", x, w1, pads=[1, 1, 1, 1]), mem[0], threshold=0.5)
        s2, mem[1] = leaky(f, f("Conv", s1, w2, pads=[1, 1, 1, 1]), mem[1], threshold=0.5)
        joined = f("Add", s1, s2) if residual else s2
        pooled = f("MaxPool", joined, kernel_shape=[2, 2], strides=[2, 2])
        s3, mem[2] = leaky(f, f("Gemm", f("Flatten", pooled), w3, transB=1), mem[2])
        spikes.append(s3)
    return spikes, mem


@pytest.mark.representative("3-1-True", "6-2-False")
@pytest.mark.parametrize(("steps", "batch", "residual"), list(itertools.product([3, 6], [1, 2], [False, True])))
def test_spiking_networks(steps, batch, residual, tmp_path):
    f = File()
    spikes, _ = spiking(f, steps, batch, residual)
    f.stack(spikes, "y")
    path = f.save(tmp_path / "m.onnx", {"x": [steps, batch, 1, 6, 6]}, ["y"])
    graph = compare(path, {"x": 2 * drawn(steps, batch, 1, 6, 6, seed=5)})
    kinds = [type(graph.operation(n)) for n in graph.names]
    assert kinds.count(Conv) == 2
    assert kinds.count(Population) == 3
    assert kinds.count(Pool) == kinds.count(Linear) == kinds.count(Flatten) == 1
    assert kinds.count(Add) == residual
    assert [p.model.name for _, p in graph.of_type(Population)] == ["LIF"] * 3
    assert graph.operation("x").shape == (1, 6, 6)


def body(op, batch):
    """A loop body: a convolution, a membrane and its spikes."""
    f = File(np.random.default_rng(7), initializers=False)
    x = f("Gather", "x", "k", axis=0) if op == "Loop" else "row"
    spike, mem = leaky(f, f("Conv", x, drawn(2, 1, 3, 3)), "s", threshold=0.5)
    f.nodes.append(helper.make_node("Identity", [mem], ["s2"]))
    f.nodes.append(helper.make_node("Identity", [spike], ["stacked"]))
    info, float32 = helper.make_tensor_value_info, TensorProto.FLOAT
    state = info("s", float32, [batch, 2, 3, 3])
    outputs = [info("s2", float32, None), info("stacked", float32, None)]
    if op == "Scan":
        return helper.make_graph(f.nodes, "body", [state, info("row", float32, [batch, 1, 5, 5])], outputs)
    f.nodes.append(helper.make_node("Identity", ["c"], ["c2"]))
    inputs = [info("k", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), state]
    return helper.make_graph(f.nodes, "body", inputs, [info("c2", TensorProto.BOOL, []), *outputs])


@pytest.mark.parametrize("op", ["Loop", "Scan"])
def test_convolutions_inside_loops(op, tmp_path):
    f = File()
    zero = f.const(np.zeros((B, 2, 3, 3), F))
    if op == "Loop":
        last, stack = f("Loop", np.array(T), np.array(True), zero, outputs=2, body=body(op, B))
    else:
        last, stack = f("Scan", zero, "x", outputs=2, body=body(op, B), num_scan_inputs=1)
    for name, value in (("last", last), ("y", stack)):
        f.nodes.append(helper.make_node("Identity", [value], [name]))
    path = f.save(tmp_path / "m.onnx", {"x": [T, B, 1, 5, 5]}, ["last", "y"])
    graph = compare(path, {"x": 2 * drawn(T, B, 1, 5, 5)})
    assert len(list(graph.of_type(Conv))) == 1


def test_a_convolution_in_a_single_step_with_its_state_outside(tmp_path):
    f = File()
    spike, mem = leaky(f, f("Conv", "x", drawn(2, 1, 3, 3)), "mem", threshold=0.5)
    for name, value in (("spk", spike), ("mem_out", mem)):
        f.nodes.append(helper.make_node("Identity", [value], [name]))
    graph = load_onnx(f.save(tmp_path / "m.onnx", {"x": [B, 1, 5, 5], "mem": [B, 2, 3, 3]}, ["spk", "mem_out"]), steps=T)
    assert set(graph.state_inputs) == {"mem"}
    (population,) = [p for _, p in graph.of_type(Population)]
    assert population.shape == (2, 3, 3)


def test_a_recurrent_convolution(tmp_path):
    f = File()
    w, r = f.const(drawn(2, 1, 3, 3)), f.const(drawn(2, 2, 3, 3))
    mem = spike = f.const(np.zeros((B, 2, 5, 5), F))
    spikes = []
    for t in range(5):
        x = f("Conv", f("Gather", "x", np.array(t), axis=0), w, pads=[1, 1, 1, 1])
        current = f("Add", x, f("Conv", spike, r, pads=[1, 1, 1, 1]))
        spike, mem = leaky(f, current, mem, threshold=0.5)
        spikes.append(spike)
    f.stack(spikes, "y")
    graph = compare(f.save(tmp_path / "m.onnx", {"x": [5, B, 1, 5, 5]}, ["y"]), {"x": drawn(5, B, 1, 5, 5)})
    assert sum(e.delay for e in graph.edges) == 1


@pytest.mark.parametrize("leading", [True, False], ids=["batch dynamic", "batch fixed"])
def test_outputs_keep_the_axes_of_the_file(leading, tmp_path):
    f = File()
    spikes, mem = spiking(f, 4, 2, False)
    f.stack([f("Unsqueeze", s, np.array([1])) for s in spikes], "y", axis=2 if leading else 1)
    f.nodes.append(helper.make_node("Identity", [mem[0]], ["last"]))
    path = f.save(tmp_path / "m.onnx", {"x": [4, 2, 1, 6, 6]}, ["y", "last"])
    compare(path, {"x": 2 * drawn(4, 2, 1, 6, 6)})


def test_networks_without_a_batch_axis(tmp_path):
    f = File()
    mem, spikes = f.const(np.zeros((1, 2, 4, 4), F)), []
    for t in range(4):
        x = f("Unsqueeze", f("Gather", "x", np.array(t), axis=0), np.array([0]))
        spike, mem = leaky(f, f("Conv", x, drawn(2, 3, 2, 2)), mem, threshold=0.5)
        spikes.append(f("Squeeze", spike, np.array([0])))
    f.stack(spikes, "y")
    graph = compare(f.save(tmp_path / "m.onnx", {"x": [4, 3, 5, 5]}, ["y"]), {"x": 2 * drawn(4, 3, 5, 5)})
    assert graph.operation("x").layout.batch_axis is None
    assert graph.operation("x").shape == (3, 5, 5)


def test_inputs_and_reductions_are_nodes(tmp_path):
    graph = integrated(LAYERS["global average"][1], tmp_path, (2, 5, 4))
    assert [type(graph.operation(n)) for n in graph.names].count(Reduce) == 1
    assert isinstance(graph.operation("x"), Input)
    graph = integrated(LAYERS["concat of channels"][1], tmp_path, (2, 4, 4))
    assert [op.axis for _, op in graph.of_type(Concat)] == [0]
