"""Operators with unsupported attributes, shapes or data are refused with the code and the reason."""

import numpy as np
import pytest
from onnx_files import File

from snnc.frontends.onnx import errors
from snnc.frontends.onnx.load import load_onnx

X = [4, 2, 3]
E = errors
I64 = np.int64


def whole(*numbers):
    return np.array(numbers, I64)


def recurrent(hidden=3, **attributes):
    return ("x", np.ones((1, hidden, 3)), np.ones((1, hidden, hidden))), attributes


CASES = {
    "softmax": ("Softmax", ("x",), {}, E.UnsupportedOperatorError, "couples the neurons"),
    "gated layer": ("LSTM", ("x", np.ones((1, 12, 3)), np.ones((1, 12, 3))), {}, E.UnsupportedOperatorError, "nn.LSTMCell"),
    "backward layer": ("RNN", *recurrent(direction="reverse"), E.TimeMixingError, "backward"),
    "activation": ("RNN", *recurrent(activations=["Elu"]), E.UnsupportedOperatorError, "not with 'Elu'"),
    "recurrent weights": ("RNN", ("x", np.ones((1, 3, 3)), np.ones((1, 2, 3))), {}, E.ShapeError, "do not fit"),
    "sample lengths": (
        "RNN",
        ("x", np.ones((1, 3, 3)), np.ones((1, 3, 3)), "", whole(4, 3)),
        {},
        E.UnsupportedOperatorError,
        "different lengths",
    ),
    "initial state": (
        "RNN",
        ("x", np.ones((1, 3, 3)), np.ones((1, 3, 3)), "", "", np.ones((1, 5, 3))),
        {},
        E.ShapeError,
        r"must be \[1, 2, 3\]",
    ),
    "diagonal": ("Einsum", ("x",), {"equation": "aab->ab"}, E.UnsupportedOperatorError, "diagonal"),
    "operands": ("Einsum", ("x",), {"equation": "ab,bc->ac"}, E.MalformedGraphError, "has 2 operands, but the node has 1"),
    "letters": ("Einsum", ("x",), {"equation": "ab->a"}, E.MalformedGraphError, "does not fit operands"),
    "factors": ("Einsum", ("x", "x", "x"), {"equation": "abc,abc,abc->abc"}, E.UnsupportedOperatorError, "multiplies 3 values"),
    "sizes": ("Einsum", ("x", np.ones((2, 3))), {"equation": "abc,ac->b"}, E.ShapeError, "the axis 'a' has 4 entries, but also 2"),
    "product of data": ("MatMul", ("x", "x"), {}, E.UnsupportedOperatorError, "constant matrix"),
    "bias": ("Gemm", ("flat", np.ones((3, 2)), np.ones(3)), {}, E.ShapeError, "a bias of shape"),
    "product over time": ("Gemm", (np.ones((8, 8)), "flat"), {}, E.UnsupportedOperatorError, "from the left"),
    "order of axes": ("Transpose", ("x",), {"perm": [0, 0, 1]}, E.MalformedGraphError, "not a permutation"),
    "new shape": ("Reshape", ("x", whole(5, -1)), {}, E.ShapeError, "cannot be reshaped"),
    "parts": ("Split", ("x", whole(1, 1)), {"axis": 0}, E.ShapeError, "do not add up to the 4"),
    "index": ("Gather", ("x", whole(7)), {"axis": 0}, E.ShapeError, "outside the 4"),
    "indices": ("GatherND", ("x", np.array([[9]], I64)), {}, E.ShapeError, "outside the first axes"),
    "batched indices": ("GatherND", ("x", np.array([[0]] * 4, I64)), {"batch_dims": 1}, E.UnsupportedOperatorError, "batch_dims"),
    "step of a slice": ("Slice", ("x", whole(0), whole(2), whole(0), whole(0)), {}, E.MalformedGraphError, "a step of 0"),
    "empty slice": ("Slice", ("x", whole(2), whole(2), whole(0)), {}, E.ShapeError, "is empty"),
    "sized sequence": ("SplitToSequence", ("x", whole(2, 2)), {"axis": 0}, E.UnsupportedOperatorError, "with sizes"),
    "places of data": ("NonZero", ("x",), {}, E.DataDependentError, "network's data"),
    "range": ("Range", (np.array(0), np.array(4), np.array(0)), {}, E.MalformedGraphError, "step of Range is 0"),
    "negative shape": ("ConstantOfShape", (whole(-2),), {}, E.ShapeError, "negative size"),
    "pads": ("Pad", ("x", whole(1, 1)), {}, E.MalformedGraphError, "2 pads for 3 axes"),
    "pad mode": ("Pad", ("x", whole(0, 0, 1, 0, 0, 0)), {"mode": "mirror"}, E.MalformedGraphError, "'mode' is 'mirror'"),
    "reflection": ("Pad", ("x", whole(0, 0, 3, 0, 0, 0)), {"mode": "reflect"}, E.ShapeError, "at most 2"),
    "cropping": ("Pad", ("x", whole(0, 0, -2, 0, 0, -2)), {}, E.ShapeError, "leave nothing"),
    "blocks of channels": ("DepthToSpace", ("image",), {"blocksize": 2}, E.ShapeError, "blocks of 2"),
    "blocks of pixels": ("SpaceToDepth", ("image",), {"blocksize": 2}, E.ShapeError, "blocks of 2"),
    "scales": ("Resize", ("x", "", np.ones(2, np.float32)), {}, E.MalformedGraphError, "2 scales for 3 axes"),
    "no size": ("Resize", ("x", "", "", whole(4, 2, 0)), {}, E.ShapeError, "must be 1 or more"),
    "interpolation": ("Resize", ("x", "", "", whole(4, 2, 6)), {"mode": "cubic"}, E.NotYetError, "'nearest' and 'linear'"),
    "rounding": ("Resize", ("x", "", "", whole(4, 2, 6)), {"nearest_mode": "up"}, E.MalformedGraphError, "'nearest_mode' is 'up'"),
    "coordinates": (
        "Resize",
        ("x", "", "", whole(4, 2, 6)),
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
        E.NotYetError,
        "tf_crop_and_resize",
    ),
    "weights from data": ("ConvTranspose", ("x", "x"), {}, E.UnsupportedOperatorError, "constant weights"),
    "automatic pads": ("ConvTranspose", ("x", np.ones((2, 1, 2))), {"auto_pad": "SAME_UPPER"}, E.NotYetError, "use 'pads'"),
    "stride": ("ConvTranspose", ("x", np.ones((2, 1, 2))), {"strides": [0]}, E.MalformedGraphError, "1 or more"),
    "channels": ("ConvTranspose", ("x", np.ones((3, 1, 2))), {}, E.ShapeError, "2 channels"),
    "reversed sum": ("CumSum", ("x", np.array(2)), {"reverse": 1}, E.NotYetError, "without 'reverse'"),
    "no kernel": ("MaxPool", ("x",), {}, E.MalformedGraphError, "'kernel_shape' is missing"),
    "indices of maxima": ("MaxPool", ("x",), {"kernel_shape": [2], "outputs": 2}, E.UnsupportedOperatorError, "indices of a maximum"),
    "no space": ("GlobalMaxPool", ("flat",), {}, E.ShapeError, "no spatial axes"),
    "variance": ("BatchNormalization", ("x", *(-np.ones(2),) * 4), {}, E.MalformedGraphError, "variance is negative"),
    "statistics": ("BatchNormalization", ("x", *(np.ones(5),) * 4), {}, E.ShapeError, "do not fit the 2 channels"),
    "remainder": ("Mod", ("x", np.array(2.0)), {"fmod": 1}, E.UnsupportedOperatorError, "Mod of sizes"),
    "data type": ("Cast", ("x",), {"to": 99}, E.MalformedGraphError, "the data type 99 is unknown"),
    "whole numbers": ("Cast", ("x",), {"to": 7}, E.UnsupportedOperatorError, "rounds values of the network to int64"),
    "whole products": ("Cast", ("half",), {"to": 7}, E.UnsupportedOperatorError, "rounds values of the network to int64"),
    "truth of products": ("Cast", ("half",), {"to": 9}, E.UnsupportedOperatorError, "rounds values of the network to bool"),
    "dropout": ("Dropout", ("x", np.float32(0.5), np.array(True)), {}, E.UnsupportedOperatorError, "drops at random"),
    "place outside": ("ScatterND", ("x", whole(9)[None], np.ones((1, 2, 3))), {}, E.ShapeError, "writes outside"),
    "written index": ("ScatterElements", ("x", whole(0), np.ones(1)), {}, E.ShapeError, "an index of shape"),
    "attribute": ("Flatten", ("x",), {"axis": 1.5}, E.MalformedGraphError, "'axis' is not an integer"),
}


@pytest.mark.parametrize(("operator", "inputs", "attributes", "error", "text"), CASES.values(), ids=CASES)
def test_what_does_not_fit_is_refused(operator, inputs, attributes, error, text, tmp_path):
    f = File()
    named = {
        "flat": lambda: f("Reshape", "x", whole(8, 3)),
        "image": lambda: f("Reshape", "x", whole(1, 2, 3, 4)),
        "half": lambda: f("Mul", "x", 0.5),
    }
    given = [named[i]() if isinstance(i, str) and i in named else i for i in inputs]
    f(operator, *given, **attributes)
    f.nodes[-1].output[0] = "y"
    with pytest.raises(error, match=f"{error.code}: .*{text}"):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": X}, ["y"]))


def test_levels_of_rounding_are_limited(tmp_path):
    f = File()
    f("Round", f("Clip", "x", 0.0, 100.0))
    f.nodes[-1].output[0] = "y"
    with pytest.raises(E.NotYetError, match="rounds to 101 levels; snnc reads at most 65"):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": X}, ["y"]))


def test_an_output_that_an_operator_does_not_give(tmp_path):
    f = File()
    _, mask = f("Dropout", "x", outputs=2)
    f("Cast", mask, to=1)
    f.nodes[-1].output[0] = "y"
    with pytest.raises(E.MalformedGraphError, match="which no node, input or initializer defines"):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": X}, ["y"]))
