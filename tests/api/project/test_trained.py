"""Trained weights that do not fit the model of a project are refused, or left out if the caller is lenient."""

import numpy as np
import pytest

import snnc
from snnc.backends.folders.manifest import TRAINED
from snnc.backends.runtime.weights import save_weights
from snnc.errors import TrainedWeightsError
from snnc.project.trained import read_trained


@pytest.fixture
def graph():
    net = snnc.Network(seed=1)
    hidden = net.population(4, snnc.LIF(), name="hidden", parameters={"beta": np.full(4, 0.9)}, learnable=["beta"])
    net.connect(net.input(3), hidden, snnc.Dense(bias=True), name="dense")
    return net.graph()


@pytest.mark.parametrize("label", ["hidden.beta", "dense.weight", "dense.bias"])
def test_values_of_another_size_are_refused_and_named(graph, tmp_path, label):
    (tmp_path / TRAINED).parent.mkdir()
    save_weights(tmp_path / TRAINED, {label: np.ones(7, np.float32)})
    with pytest.raises(TrainedWeightsError, match=rf"{label} has shape \(7,\), but in the model \("):
        read_trained(graph, tmp_path)
    with pytest.warns(UserWarning, match=label):
        assert read_trained(graph, tmp_path, lenient=True) is graph


def test_values_of_the_same_size_get_the_shape_of_the_model(graph, tmp_path):
    (tmp_path / TRAINED).parent.mkdir()
    save_weights(tmp_path / TRAINED, {"dense.weight": np.arange(12, dtype=np.float32), "hidden.beta": np.full(4, 0.5, np.float32)})
    trained = read_trained(graph, tmp_path)
    np.testing.assert_array_equal(trained.operation("dense").weight, np.arange(12, dtype=np.float32).reshape(4, 3))
    np.testing.assert_array_equal(trained.operation("hidden").parameters["beta"], np.full(4, 0.5, np.float32))
