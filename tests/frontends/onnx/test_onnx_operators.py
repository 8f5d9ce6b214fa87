"""Every operator handler compared with ONNX Runtime, and the shape arithmetic that must be eliminated."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_files import File
from simulate import simulate

from snnc.compiler.ir.graph import Linear
from snnc.frontends.onnx.load import load_onnx

F = np.float32
T, B, N = 4, 2, 6
I64 = np.int64


def step(make):
    """A file that integrates ``make(f, x_t)`` over time."""

    def build(f):
        mem, values = f.const(np.zeros((B, N), F)), []
        for t in range(T):
            mem = f("Add", f("Mul", 0.5, mem), make(f, f("Gather", "x", np.array(t), axis=0)))
            values.append(mem)
        f.stack(values, "y")

    return build


def weight(rows=N, columns=N):
    return np.random.default_rng(3).normal(0, 0.5, (rows, columns)).astype(F)


ELEMENTWISE = {
    "Abs": lambda f, x: f("Abs", x),
    "And": lambda f, x: f("Cast", f("And", f("Greater", x, 0.0), f("Less", x, 1.0)), to=1),
    "Clip": lambda f, x: f("Clip", x, -0.5, 0.5),
    "Div": lambda f, x: f("Div", x, 3.0),
    "Equal": lambda f, x: f("Cast", f("Equal", f("Relu", x), 0.0), to=1),
    "Exp": lambda f, x: f("Exp", x),
    "GreaterOrEqual": lambda f, x: f("Cast", f("GreaterOrEqual", x, 0.0), to=1),
    "Less": lambda f, x: f("Cast", f("Less", x, 0.3), to=1),
    "LessOrEqual": lambda f, x: f("Cast", f("LessOrEqual", x, 0.3), to=1),
    "Log": lambda f, x: f("Log", f("Add", f("Abs", x), 1.0)),
    "Max": lambda f, x: f("Max", x, 0.0, np.full((B, N), 0.1, F)),
    "Mean": lambda f, x: f("Mean", x, f("Neg", x), 1.5),
    "Min": lambda f, x: f("Min", x, 0.2),
    "Not": lambda f, x: f("Cast", f("Not", f("Greater", x, 0.0)), to=1),
    "Or": lambda f, x: f("Cast", f("Or", f("Greater", x, 1.0), f("Less", x, -1.0)), to=1),
    "Pow": lambda f, x: f("Pow", f("Abs", x), 2.0),
    "Reciprocal": lambda f, x: f("Reciprocal", f("Add", f("Abs", x), 1.0)),
    "Sigmoid": lambda f, x: f("Sigmoid", x),
    "Sign": lambda f, x: f("Sign", x),
    "Sqrt": lambda f, x: f("Sqrt", f("Abs", x)),
    "Sum": lambda f, x: f("Sum", x, x, 1.0),
    "Tanh": lambda f, x: f("Tanh", x),
    "Where": lambda f, x: f("Where", f("Greater", x, 0.0), x, f("Mul", x, 0.1)),
    "a per-neuron parameter": lambda f, x: f("Mul", x, np.arange(N, dtype=F)),
}
LAYERS = {
    "Gemm": lambda f, x: f("Gemm", x, weight(), np.ones(N), transB=1, alpha=0.5, beta=2.0),
    "Gemm, not transposed": lambda f, x: f("Gemm", x, weight(), transB=0),
    "MatMul": lambda f, x: f("MatMul", x, weight()),
    "MatMul and Add": lambda f, x: f("Add", f("MatMul", x, weight()), np.arange(N, dtype=F)),
    "MatMul of a constant": lambda f, x: f("Transpose", f("MatMul", weight(), f("Transpose", x, perm=[1, 0])), perm=[1, 0]),
    "slice of a product": lambda f, x: f("Slice", f("MatMul", x, weight(N, 2 * N)), np.array([N]), np.array([2 * N]), np.array([1])),
    "Split of a product": lambda f, x: f("Sub", *f("Split", f("MatMul", x, weight(N, 2 * N)), axis=1, outputs=2)),
    "Concat": lambda f, x: f("MatMul", f("Concat", x, f("Neg", f("MatMul", x, weight())), axis=1), weight(2 * N, N)),
}
MOVES = {
    "Reshape": lambda f, x: f("Reshape", f("Reshape", x, np.array([B, 1, -1])), np.array([B, N])),
    "Reshape to remainders": lambda f, x: f("Reshape", x, f("Mod", np.array([B + 64, N - 64]), np.array([64, 64]))),
    "Flatten": lambda f, x: f("Flatten", f("Unsqueeze", x, np.array([2])), axis=1),
    "Squeeze": lambda f, x: f("Squeeze", f("Unsqueeze", x, np.array([0, 2])), np.array([0, 2])),
    "Expand": lambda f, x: f("Expand", x, np.array([B, N])),
    "Transpose twice": lambda f, x: f("Transpose", f("Transpose", x, perm=[1, 0]), perm=[1, 0]),
    "Identity": lambda f, x: f("Identity", x),
    "Tile of a constant": lambda f, x: f("Add", x, f("Tile", np.ones((1, N), F), np.array([B, 1]))),
}


def compare(path, tmp_feed, tolerance=1e-5):
    ort = pytest.importorskip("onnxruntime")
    graph = load_onnx(path)
    session = ort.InferenceSession(str(path))
    wanted = dict(zip([o.name for o in session.get_outputs()], session.run(None, tmp_feed), strict=True))
    found = simulate(graph, tmp_feed)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)
    return graph


def feed():
    return {"x": np.random.default_rng(0).normal(0, 1, (T, B, N)).astype(F)}


@pytest.mark.representative("*-initializers", "Clip-*", "Gemm-*", "Reshape-*")
@pytest.mark.parametrize("initializers", [True, False], ids=["initializers", "Constant nodes"])
@pytest.mark.parametrize("name", [*ELEMENTWISE, *LAYERS, *MOVES])
def test_operators_mean_what_onnx_runtime_computes(name, initializers, tmp_path):
    f = File(initializers=initializers)
    step({**ELEMENTWISE, **LAYERS, **MOVES}[name])(f)
    compare(f.save(tmp_path / "m.onnx", {"x": [T, B, N]}, ["y"]), feed())


def test_shape_arithmetic_vanishes(tmp_path):
    f = File()
    shape = f("Shape", "x")
    batch = f("Gather", shape, np.array([1]), axis=0)
    zeros = f("ConstantOfShape", f("Concat", batch, np.array([N]), axis=0), value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0.0]))
    size = f("Mul", f("Add", f("Size", "x"), np.array(0)), np.array(1))
    flat = f("Reshape", "x", f("Concat", f("Unsqueeze", f("Div", size, np.array(N)), np.array([0])), np.array([-1]), axis=0))
    back = f("Reshape", f("MatMul", flat, weight()), shape)
    mem, values = zeros, []
    for t in range(T):
        at = f("Gather", f("Range", np.array(0), np.array(T), np.array(1)), np.array(t), axis=0)
        mem = f("Add", f("Mul", 0.5, mem), f("Gather", back, at, axis=0))
        values.append(mem)
    f.stack(values, "y")
    graph = compare(f.save(tmp_path / "m.onnx", {"x": [T, "batch", N]}, ["y"]), feed())
    assert len(list(graph.of_type(Linear))) == 1


def body(op):
    """A loop body over one state: state' = 0.5 state + x_t."""
    f = File(np.random.default_rng(0), initializers=False)
    x = f("Gather", "x", "k", axis=0) if op == "Loop" else "row"
    f("Add", f("Mul", 0.5, "s"), x)
    f.nodes[-1].output[0] = "s2"
    f.nodes.append(helper.make_node("Identity", ["s2"], ["stacked"]))
    info = helper.make_tensor_value_info
    if op == "Scan":
        inputs = [info("s", TensorProto.FLOAT, [B, N]), info("row", TensorProto.FLOAT, [B, N])]
        outputs = []
    else:
        inputs = [info("k", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, [B, N])]
        outputs = [info("c2", TensorProto.BOOL, [])]
        f.nodes.append(helper.make_node("Identity", ["c"], ["c2"]))
    outputs += [info(n, TensorProto.FLOAT, [B, N]) for n in ("s2", "stacked")]
    return helper.make_graph(f.nodes, "body", inputs, outputs)


@pytest.mark.parametrize("op", ["Loop", "Scan"])
def test_loops_and_scans_are_one_step(op, tmp_path):
    f = File()
    zero = f.const(np.zeros((B, N), F))
    if op == "Loop":
        last, stack = f("Loop", np.array(T), np.array(True), zero, outputs=2, body=body(op))
    else:
        last, stack = f("Scan", zero, "x", outputs=2, body=body(op), num_scan_inputs=1)
    for name, value in (("last", last), ("y", stack)):
        f.nodes.append(helper.make_node("Identity", [value], [name]))
    path = f.save(tmp_path / "m.onnx", {"x": [T, B, N]}, ["last", "y"])
    graph = compare(path, feed())
    assert graph.operation("last").readout == "last"
    assert graph.operation("y").readout == "all"


def test_sequences_and_scatter_are_stacks(tmp_path):
    f = File()
    mem, items, buffer = f.const(np.zeros((B, N), F)), f("SequenceEmpty"), f.const(np.zeros((T, B, N), F))
    for t in range(T):
        mem = f("Add", f("Mul", 0.5, mem), f("Gather", "x", np.array(t), axis=0))
        items = f("SequenceInsert", items, mem)
        buffer = f("ScatterND", buffer, np.array([[t]]), f("Unsqueeze", mem, np.array([0])))
    f("ConcatFromSequence", items, axis=0, new_axis=1)
    f.nodes[-1].output[0] = "y"
    f.nodes.append(helper.make_node("Identity", [buffer], ["z"]))
    compare(f.save(tmp_path / "m.onnx", {"x": [T, B, N]}, ["y", "z"]), feed())


def test_a_single_step_pairs_its_states(tmp_path):
    f = File()
    f("Add", f("Mul", 0.5, "mem"), "x")
    f.nodes[-1].output[0] = "mem_out"
    graph = load_onnx(f.save(tmp_path / "m.onnx", {"x": [B, N], "mem": [B, N]}, ["mem_out"]), steps=9)
    assert set(graph.state_inputs) == {"mem"}
    assert graph.steps == 9
    x, start = feed()["x"], np.ones((B, N), F)
    found = simulate(graph, {"x": x}, {"mem": start})["mem_out"]
    np.testing.assert_allclose(found[1], 0.5 * (0.5 * start + x[0]) + x[1], atol=1e-6)
