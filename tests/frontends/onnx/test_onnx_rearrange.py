"""Layers that move values within a sample, pad them or multiply along one of several axes, compared with ONNX Runtime."""

import numpy as np
import pytest
from onnx_files import File, leaky
from test_onnx_readouts import compare

from snnc.compiler.ir.graph import Conv, Linear, Pad, Sparse
from snnc.frontends.onnx.errors import NotYetError, ShapeError, StepGraphError, TimeMixingError, UnsupportedOperatorError
from snnc.frontends.onnx.flattening.node import GatherMap
from snnc.frontends.onnx.load import load_onnx
from snnc.frontends.onnx.reroll.rearrange import padding_of

T, B = 4, 2
F = np.float32


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 0.6, shape).astype(F)


def saved(make, path, shape, opset=18):
    """Write a layer between the input and leaky neurons, step by step."""
    f, mem, values = File(), None, []
    for t in range(T):
        y = make(f, f("Gather", "x", np.array(t), axis=0))
        spike, mem = leaky(f, y, np.zeros((), F) if mem is None else mem, threshold=0.3)
        values.append(f("Add", mem, spike))
    f.stack(values, "y")
    return f.save(path / "m.onnx", {"x": [T, B, *shape]}, ["y"], opset=opset)


def kinds(graph):
    return {type(graph.operation(n)) for n in graph.names}


def pads(*numbers):
    return np.array(numbers)


LAYERS = {
    "a transpose into a matrix product": (
        (3, 4),
        lambda f, x: f("Gemm", f("Flatten", f("Transpose", x, perm=[0, 2, 1])), drawn(5, 12), transB=1),
        {Linear},
    ),
    "a transpose of neurons": ((3, 4), lambda f, x: f("Transpose", x, perm=[0, 2, 1]), {Sparse}),
    "channels last into a convolution": (
        (6, 5, 2),
        lambda f, x: f("Conv", f("Transpose", x, perm=[0, 3, 1, 2]), drawn(3, 2, 3, 3)),
        {Sparse, Conv},
    ),
    "a matrix product for each place": ((3, 4), lambda f, x: f("MatMul", x, drawn(4, 5)), {Conv, Sparse}),
    "a matrix product from the left": ((3, 4), lambda f, x: f("MatMul", drawn(5, 3), x), {Conv}),
    "heads": ((3, 4), lambda f, x: f("Squeeze", f("MatMul", f("Unsqueeze", x, np.array([2])), drawn(3, 4, 5)), np.array([2])), {Linear}),
    "zeros around an image go into the convolution": (
        (2, 5, 5),
        lambda f, x: f("Conv", f("Pad", x, pads(0, 0, 1, 2, 0, 0, 0, 1)), drawn(3, 2, 3, 3)),
        {Conv},
    ),
    "zeros around an image": ((2, 5, 5), lambda f, x: f("MaxPool", f("Pad", x, pads(0, 0, 1, 1, 0, 0, 1, 1)), kernel_shape=[2, 2]), {Pad}),
    "constants around a vector": (
        (5,),
        lambda f, x: f("Gemm", f("Pad", x, pads(0, 2, 0, 1), np.array(0.5, F)), drawn(3, 8), transB=1),
        {Linear},
    ),
    "places along several axes": (
        (3, 4),
        lambda f, x: f(
            "Transpose", f("GatherND", f("Transpose", x, perm=[1, 2, 0]), np.array([[2, 1], [-3, 3], [0, 0], [2, 1]])), perm=[1, 0]
        ),
        set(),
    ),
    "reflected": ((2, 5), lambda f, x: f("Pad", x, pads(0, 0, 2, 0, 0, 1), mode="reflect"), {Sparse}),
    "edge": ((2, 5), lambda f, x: f("Pad", x, pads(0, 0, 2, 0, 0, 1), mode="edge"), {Sparse}),
    "cropped": ((2, 5), lambda f, x: f("Pad", x, pads(0, 0, -1, 0, 0, 2)), set()),
    "a constant beside": ((5,), lambda f, x: f("Gemm", f("Concat", x, np.ones((B, 2), F), axis=1), drawn(3, 7), transB=1), {Linear}),
    "parts side by side": ((2, 3, 3), lambda f, x: f("Concat", x, f("Mul", x, 2.0), axis=3), {Sparse}),
    "rolled": (
        (9,),
        lambda f, x: f("Concat", f("Slice", x, pads(7), pads(9), pads(1)), f("Slice", x, pads(0), pads(7), pads(1)), axis=1),
        set(),
    ),
    "reversed neurons": ((9,), lambda f, x: f("Slice", x, pads(-1), pads(-99), pads(1), pads(-1)), {Sparse}),
    "depth to space": ((8, 3, 2), lambda f, x: f("DepthToSpace", x, blocksize=2), {Sparse}),
    "depth to space, columns first": ((8, 3, 2), lambda f, x: f("DepthToSpace", x, blocksize=2, mode="CRD"), {Sparse}),
    "space to depth": ((2, 4, 6), lambda f, x: f("SpaceToDepth", x, blocksize=2), {Sparse}),
    "upsampled": (
        (2, 3, 2),
        lambda f, x: f("Resize", x, "", np.array([1, 1, 2, 3], F), coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        {Sparse},
    ),
    "upsampled smoothly": ((2, 3, 4), lambda f, x: f("Resize", x, "", "", np.array([B, 2, 6, 7]), mode="linear"), {Conv}),
    "transposed convolution": ((2, 3, 4), lambda f, x: f("ConvTranspose", x, drawn(2, 3, 3, 2), drawn(3), strides=[2, 1]), {Conv}),
    "transposed convolution with all options": (
        (4, 5),
        lambda f, x: f("ConvTranspose", x, drawn(4, 2, 3), strides=[3], pads=[1, 2], output_padding=[1], dilations=[2], group=2),
        {Conv},
    ),
    "einsum, a matrix": ((4,), lambda f, x: f("Einsum", x, drawn(5, 4), equation="bi,oi->bo"), {Linear}),
    "einsum, two axes at once": ((3, 4), lambda f, x: f("Einsum", x, drawn(3, 4, 5), equation="bpi,pio->bo"), {Linear}),
    "einsum, blocks": ((3, 4), lambda f, x: f("Einsum", drawn(3, 4, 2), x, equation="hio,...hi->...ho"), {Linear}),
    "einsum, along a place": ((3, 4), lambda f, x: f("Einsum", x, drawn(5, 3), equation="bpi,qp"), {Conv}),
    "einsum, factors": ((4,), lambda f, x: f("Einsum", x, drawn(4), equation="bi,i->bi"), set()),
    "einsum, a sum": ((3, 4), lambda f, x: f("Einsum", x, equation="bpi->bi"), set()),
    "einsum of two values": ((3, 4), lambda f, x: f("Einsum", x, f("Mul", x, 0.5), equation="bpi,bpi->bp"), set()),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_that_moves_values_is_read(name, tmp_path):
    shape, make, wanted = LAYERS[name]
    graph = compare(saved(make, tmp_path, shape), {"x": drawn(T, B, *shape, seed=9)})
    assert wanted <= kinds(graph)


def test_a_transpose_costs_nothing_before_a_matrix_product(tmp_path):
    shape, make, _ = LAYERS["a transpose into a matrix product"]
    assert Sparse not in kinds(load_onnx(saved(make, tmp_path, shape)))


REFUSED = {
    "samples swapped": (StepGraphError, (3,), lambda f, x: f("Slice", x, pads(-1), pads(-99), pads(0), pads(-1))),
    "two unknown matrices": (UnsupportedOperatorError, (3, 3), lambda f, x: f("MatMul", x, f("Mul", x, 2.0))),
    "a diagonal": (UnsupportedOperatorError, (3, 3), lambda f, x: f("Einsum", x, equation="bii->bi")),
    "too much reflected": (ShapeError, (2, 3), lambda f, x: f("Pad", x, pads(0, 0, 3, 0, 0, 0), mode="reflect")),
    "cubic": (NotYetError, (2, 3, 4), lambda f, x: f("Resize", x, "", np.array([1, 1, 2, 2], F), mode="cubic")),
    "gates over the sequence": (
        UnsupportedOperatorError,
        (4,),
        lambda f, x: f("LSTM", f("Unsqueeze", x, np.array([0])), drawn(1, 12, 4), drawn(1, 12, 3)),
    ),
    "rounding without bounds": (NotYetError, (4,), lambda f, x: f("Floor", x)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_with_its_reason(name, tmp_path):
    error, shape, make = REFUSED[name]
    with pytest.raises(error, match=r"\w+ .*[.]$"):
        load_onnx(saved(make, tmp_path, shape))


def test_a_padding_is_told_from_another_pick():
    index = np.pad(np.arange(6).reshape(2, 3), ((0, 1), (2, 0)), constant_values=-1)
    assert padding_of(GatherMap(index.reshape(-1), None, (0,), 0), (2, 3), (3, 5)) == ((0, 1), (2, 0))
    assert padding_of(GatherMap(index[:, ::-1].reshape(-1), None, (0,), 0), (2, 3), (3, 5)) is None
    assert padding_of(GatherMap(index.reshape(-1), np.ones(15, F), (0,), 0), (2, 3), (3, 5)) is None


# ---- recurrent layers and activations --------------------------------------------------------------------------------


def recurrent(path, name, **options):
    f = File()
    weight = drawn(1, 3, 3, seed=2) if not options.pop("diagonal", False) else np.diag(np.array([0.2, 0.5, 0.9], F))[None]
    f("RNN", "x", drawn(1, 3, 5), weight, drawn(1, 6, seed=3), outputs=2, activations=[name], hidden_size=3, **options)
    f.nodes[-1].output[0] = "h"
    f.nodes.append(__import__("onnx").helper.make_node("Squeeze", ["h", f.const(np.array([1]))], ["y"]))
    return f.save(path / "m.onnx", {"x": [6, B, 5]}, ["y"])


@pytest.mark.parametrize("name", ["Relu", "Tanh", "Sigmoid"])
@pytest.mark.parametrize("diagonal", [True, False])
def test_a_plain_recurrent_layer_is_unrolled(name, diagonal, tmp_path):
    graph = compare(recurrent(tmp_path, name, diagonal=diagonal), {"x": drawn(6, B, 5, seed=9)})
    assert len(list(graph.of_type(Linear))) == (1 if diagonal else 2)


def test_a_recurrent_layer_that_runs_backward_is_refused(tmp_path):
    with pytest.raises(TimeMixingError, match="backward"):
        load_onnx(recurrent(tmp_path, "Tanh", direction="reverse"))


ACTIVATIONS = {
    "Softplus": {},
    "Softsign": {},
    "LeakyRelu": {"alpha": 0.3},
    "Elu": {"alpha": 0.7},
    "Selu": {},
    "Celu": {"alpha": 0.6},
    "HardSigmoid": {"alpha": 0.4, "beta": 0.3},
    "HardSwish": {},
    "ThresholdedRelu": {"alpha": 0.2},
    "Mish": {},
}


@pytest.mark.parametrize("op", ACTIVATIONS)
def test_an_activation_is_written_in_primitives(op, tmp_path):
    compare(saved(lambda f, x: f(op, f("Mul", x, 3.0), **ACTIVATIONS[op]), tmp_path, (6,)), {"x": drawn(T, B, 6, seed=9)})


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_written_in_primitives(approximate, tmp_path):
    path = saved(lambda f, x: f("Gelu", f("Mul", x, 3.0), approximate=approximate), tmp_path, (6,), opset=20)
    compare(path, {"x": drawn(T, B, 6, seed=9)})


@pytest.mark.parametrize("op", ["Floor", "Ceil", "Round"])
@pytest.mark.parametrize("first", [True, False])
def test_rounding_between_bounds_is_a_sum_of_steps(op, first, tmp_path):
    def make(f, x):
        wide = f("Mul", x, 4.0)
        return f(op, f("Clip", wide, np.array(-1, F), np.array(3, F))) if first else f("Clip", f(op, wide), np.array(-1, F), np.array(3, F))

    halves = np.round(drawn(T, B, 6, seed=9) * 8) / 8
    compare(saved(make, tmp_path, (6,)), {"x": halves.astype(F)})
