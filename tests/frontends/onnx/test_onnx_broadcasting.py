"""Few values that affect all neurons of a layer, compared with ONNX Runtime: inhibition by a sum, shared thresholds, gates."""

import numpy as np
import pytest
from onnx_files import File, leaky
from test_onnx_readouts import compare
from test_onnx_rearrange import drawn, kinds

from snnc.compiler.ir.graph import Reduce
from snnc.frontends.onnx.errors import StepGraphError
from snnc.frontends.onnx.load import load_onnx

T, B, F = 6, 3, np.float32


def layer_sum(f, x, z):
    return f("Sub", x, f("Mul", 0.4, f("ReduceSum", z, np.array([1]), keepdims=1)))


def one_neuron(f, x, z):
    """A single neuron that all others excite inhibits them all, a step later."""
    f.inner = leaky(f, f("Gemm", z, drawn(7, 1, seed=3)), f.inner[1], threshold=0.2)
    return f("Sub", x, f.inner[0])


def gated(f, x, z):
    return f("Mul", x, f("Sigmoid", f("ReduceMean", z, np.array([1]), keepdims=1)))


WAYS = {"the sum of a layer": layer_sum, "one neuron": one_neuron, "a gate": gated}


def recurrent(way, path, sizes=(7,), weight=(5, 7)):
    f, mem, values = File(), np.zeros((B, *sizes), F), []
    z = np.zeros((B, *sizes), F)
    f.inner = (z, np.zeros((B, 1), F))
    for t in range(T):
        x = f("MatMul", f("Gather", "x", np.array(t), axis=0), drawn(*weight))
        z, mem = leaky(f, way(f, x, z), mem, threshold=0.3)
        values.append(f("Add", mem, z))
    f.stack(values, "y")
    return f.save(path / "m.onnx", {"x": [T, B, *sizes[:-1], weight[0]]}, ["y"], opset=18)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_few_values_act_on_all_neurons_of_a_layer(way, tmp_path):
    x = np.abs(drawn(T, B, 5, seed=9))
    graph = compare(recurrent(way, tmp_path), {"x": x})
    assert (way is one_neuron) != (Reduce in kinds(graph))


@pytest.mark.parametrize("axis", [1, 2])
def test_they_act_along_one_axis_of_several(axis, tmp_path):
    def along(f, x, z):
        return f("Sub", x, f("ReduceMean", z, np.array([axis]), keepdims=1))

    compare(recurrent(along, tmp_path, (3, 4), (5, 4)), {"x": np.abs(drawn(T, B, 3, 5, seed=9))})


def test_the_largest_of_a_layer_cannot_choose_within_the_step(tmp_path):
    f, mem, values = File(), np.zeros((B, 7), F), []
    for t in range(T):
        v = f("Add", f("Mul", 0.9, mem), f("MatMul", f("Gather", "x", np.array(t), axis=0), drawn(5, 7)))
        z = f("Cast", f("GreaterOrEqual", v, f("ReduceMax", v, np.array([1]), keepdims=1)), to=1)
        mem = f("Mul", v, f("Sub", 1.0, z))
        values.append(z)
    f.stack(values, "y")
    with pytest.raises(StepGraphError, match="cycle without delay"):
        load_onnx(f.save(tmp_path / "m.onnx", {"x": [T, B, 5]}, ["y"], opset=18))
