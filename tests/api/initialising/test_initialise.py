"""New weights: their moments compared with closed forms, and the resulting membranes."""

import math

import numpy as np
import pytest
from nets import dense, recurrent

import snnc
from snnc.compiler.ir.graph import Conv, Linear, Population
from snnc.compiler.neurons.library import LI, LIF, CubaLIF
from snnc.errors import InitialisationError
from snnc.initialising.incoming import incoming_weights
from snnc.initialising.lsuv import membranes
from snnc.initialising.membrane import membrane_response


def spikes(rate, steps=100, batch=8, size=400, seed=1):
    return (np.random.default_rng(seed).random((steps, batch, size)) < rate).astype(np.float32)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.95])
def test_the_response_of_a_leaky_membrane_is_a_geometric_series(beta):
    total, squares = membrane_response(Population(LIF(beta), (3,)), "i", 400)
    assert total == pytest.approx(1 / (1 - beta), rel=1e-6)
    assert squares == pytest.approx(1 / (1 - beta**2), rel=1e-6)


def test_the_response_of_a_current_based_membrane_is_two_geometric_series():
    alpha, beta = 0.8, 0.9
    _, squares = membrane_response(Population(CubaLIF(alpha, beta), (1,)), "i", 500)
    terms = np.convolve(alpha ** np.arange(500), beta ** np.arange(500))[:500]
    assert squares == pytest.approx(np.square(terms).sum(), rel=1e-6)


@pytest.mark.parametrize(("mean", "xi"), [(0.0, 2.0), (0.3, 3.0)])
def test_membranes_fluctuate_as_far_below_the_threshold_as_asked(mean, xi):
    rate = 0.1
    graph = dense(np.random.default_rng(0), 400, 300, 200, LI(0.9), kind="spikes")
    found = snnc.initialise(graph, snnc.FluctuationDriven(rate, xi, mean), seed=4)
    (weights,) = incoming_weights(found)["hidden"]
    weight = np.asarray(weights.operation.weight, np.float64)
    assert weight.mean() == pytest.approx(mean * 0.1 / (400 * rate), abs=4 * weight.std() / math.sqrt(weight.size))
    # A threshold out of reach, so that resets do not move the membranes.
    found.nx.nodes["hidden"]["operation"] = Population(LIF(0.9, threshold=1e9), (300,))
    u = membranes(found, "hidden", {"x": spikes(rate)})[50:]
    assert u.std(axis=(0, 1)).mean() == pytest.approx((1 - mean) / xi, rel=0.05)
    # The mean of a neuron is that of its weights: it differs from neuron to neuron.
    between = math.sqrt(400) * weight.std() * rate / (1 - 0.9)
    assert u.mean() == pytest.approx(mean, abs=4 * between / math.sqrt(300))


def test_moments_of_an_input_come_from_the_data():
    graph = dense(np.random.default_rng(0), 400, 300, 200, kind="spikes")
    data = spikes(0.3)
    first, second = (snnc.initialise(graph, snnc.FluctuationDriven(rate), data=data) for rate in (0.05, 0.3))
    one, other = (incoming_weights(g)["hidden"][0].operation.weight.std() for g in (first, second))
    assert one == pytest.approx(other, rel=1e-6)
    assert one == pytest.approx(0.5 / math.sqrt(400 * data.var(axis=0).mean() / (1 - 0.81)), rel=0.02)


def test_recurrent_weights_get_the_rest_of_the_variance():
    found = snnc.initialise(recurrent(np.random.default_rng(0)), snnc.FluctuationDriven(0.1, feedforward=0.8), seed=3)
    forward, back = sorted(incoming_weights(found)["hidden"], key=lambda one: one.recurrent)
    assert (forward.recurrent, back.recurrent) == (False, True)
    expected = [math.sqrt(share * 0.25 / (fan * 0.09 / (1 - 0.81))) for share, fan in ((0.8, 6), (0.2, 8))]
    for one, std in zip((forward, back), expected, strict=True):
        assert one.operation.weight.std() == pytest.approx(std, rel=0.35)
        assert not np.any(one.operation.bias)


def test_lsuv_scales_each_layer_until_its_membranes_have_the_deviation_asked_for():
    graph = dense(np.random.default_rng(0), 400, 100, 50, kind="spikes")
    data = {"x": spikes(0.1, steps=30)}
    found = snnc.initialise(graph, snnc.LSUV(std=0.7, tolerance=0.02), data=data)
    for name in ("hidden", "readout"):
        assert membranes(found, name, data).std() == pytest.approx(0.7, rel=0.02)
    weight = incoming_weights(found)["hidden"][0].operation.weight
    products = weight @ weight.T
    np.testing.assert_allclose(products, products[0, 0] * np.eye(len(products)), atol=1e-5 * products[0, 0])


def test_an_initialiser_draws_with_the_fans_of_a_convolution():
    net = snnc.Network()
    x = net.input((2, 8, 8))
    hidden = net.population((6, 8, 8), snnc.LIF(0.9))
    net.connect(x, hidden, snnc.Conv(6, 3, padding=1, bias=True))
    net.output(hidden)
    found = snnc.initialise(net, snnc.KaimingUniform(gain=1.0), seed=2)
    ((_, conv),) = found.of_type(Conv)
    bound = math.sqrt(3 / 18)
    assert 0.95 * bound < np.abs(conv.weight).max() <= bound
    assert not np.any(conv.bias)


def test_the_same_seed_draws_the_same_weights_and_the_graph_is_not_changed():
    graph = dense(np.random.default_rng(0))
    before = {name: op.weight.copy() for name, op in graph.of_type(Linear)}
    one, other, third = (snnc.initialise(graph, snnc.FluctuationDriven(), seed=seed) for seed in (1, 1, 2))
    for name, weight in before.items():
        np.testing.assert_array_equal(graph.operation(name).weight, weight)
        np.testing.assert_array_equal(one.operation(name).weight, other.operation(name).weight)
        assert (one.operation(name).weight != third.operation(name).weight).any()


@pytest.mark.parametrize(
    ("method", "data", "message"),
    [
        (snnc.LSUV, None, "LSUV scales weights on a batch"),
        (snnc.LSUV, np.zeros((5, 2, 6), np.float32), "are constant on this batch"),
        (snnc.FluctuationDriven, np.ones((5, 2, 6), np.float32), "'x' is constant in the data"),
        (lambda: snnc.FluctuationDriven(mean=0.99, xi=50), None, "fluctuate by more than"),
        (lambda: snnc.FluctuationDriven(mean=2), None, "the mean must be below it"),
        (lambda: snnc.FluctuationDriven(rate=1.5), None, "rate is 1.5"),
        (lambda: snnc.LSUV(std=math.nan), None, "std is nan"),
    ],
)
def test_what_cannot_be_initialised_is_refused(method, data, message):
    with pytest.raises(InitialisationError, match=message):
        snnc.initialise(dense(np.random.default_rng(0)), method(), data=data)
