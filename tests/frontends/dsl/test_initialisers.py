"""Initial weights compared with torch.nn.init: bounds, moments, and defining properties."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import snnc
from snnc.frontends.dsl.initialisers import Fans

LINEAR, CONV = (300, 200), (64, 16, 5, 3)


def fans(shape):
    """Those that PyTorch computes."""
    return Fans(*torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(shape)))


def drawn(initialiser, shape, seed=0):
    found = initialiser.draw(shape, fans(shape), np.random.default_rng(seed))
    assert found.shape == shape
    assert found.dtype == np.float32
    return found


def of_torch(function, shape, **options):
    tensor = torch.empty(shape)
    function(tensor, generator=torch.Generator().manual_seed(1), **options)
    return tensor.numpy()


PAIRS = {
    "xavier uniform": (snnc.XavierUniform(), torch.nn.init.xavier_uniform_, {}),
    "xavier uniform, gain": (snnc.XavierUniform(gain=5 / 3), torch.nn.init.xavier_uniform_, {"gain": 5 / 3}),
    "xavier normal": (snnc.XavierNormal(0.5), torch.nn.init.xavier_normal_, {"gain": 0.5}),
    "kaiming uniform": (snnc.KaimingUniform(), torch.nn.init.kaiming_uniform_, {"nonlinearity": "relu"}),
    "kaiming uniform, out": (
        snnc.KaimingUniform(1.0, "fan_out"),
        torch.nn.init.kaiming_uniform_,
        {"mode": "fan_out", "nonlinearity": "linear"},
    ),
    "kaiming normal": (snnc.KaimingNormal(), torch.nn.init.kaiming_normal_, {"nonlinearity": "relu"}),
    "kaiming normal, out": (snnc.KaimingNormal(mode="fan_out"), torch.nn.init.kaiming_normal_, {"mode": "fan_out", "nonlinearity": "relu"}),
    "the default of layers": (snnc.FanIn(), torch.nn.init.kaiming_uniform_, {"a": math.sqrt(5)}),
    "truncated normal": (snnc.TruncatedNormal(), torch.nn.init.trunc_normal_, {}),
    "truncated normal, off centre": (
        snnc.TruncatedNormal(0.5, 0.3, -0.2, 1.0),
        torch.nn.init.trunc_normal_,
        {"mean": 0.3, "std": 0.5, "a": -0.2, "b": 1.0},
    ),
    "uniform": (snnc.Uniform(-0.5, 2.0), torch.nn.init.uniform_, {"a": -0.5, "b": 2.0}),
    "normal": (snnc.Normal(0.1, 0.4), torch.nn.init.normal_, {"mean": 0.4, "std": 0.1}),
}


@pytest.mark.parametrize("shape", [LINEAR, CONV], ids=["linear", "convolution"])
@pytest.mark.parametrize("name", PAIRS)
def test_what_is_drawn_is_distributed_as_what_pytorch_draws(name, shape):
    ours, function, options = PAIRS[name]
    a, b = drawn(ours, shape).ravel(), of_torch(function, shape, **options).ravel()
    assert stats.ks_2samp(a, b).pvalue > 1e-3
    assert a.std() == pytest.approx(b.std(), rel=0.03)
    np.testing.assert_allclose(a.mean(), b.mean(), atol=5 * b.std() / len(b) ** 0.5)
    if "normal" not in name or "truncated" in name:
        reach = b.max() - b.min()
        np.testing.assert_allclose([a.min(), a.max()], [b.min(), b.max()], atol=2e-3 * reach)


@pytest.mark.parametrize(("shape", "gain"), [((40, 30), 1.0), ((30, 40), 2.0), ((1, 7), 1.0), ((8, 3, 3, 2), 0.5), ((20, 2, 3), 1.0)])
def test_orthogonal_rows_or_columns_are_orthogonal(shape, gain):
    found = drawn(snnc.Orthogonal(gain), shape).reshape(shape[0], -1).astype(np.float64)
    product = found @ found.T if len(found) <= found.shape[1] else found.T @ found
    np.testing.assert_allclose(product, gain**2 * np.eye(len(product)), atol=1e-6)
    np.testing.assert_allclose(np.linalg.svd(torch.nn.init.orthogonal_(torch.empty(shape), gain).flatten(1))[1], gain, rtol=1e-5)


def test_orthogonal_matrices_are_distributed_evenly():
    """Of the Haar measure, every entry has mean 0 and variance 1/n; without the signs of R, the diagonal has not."""
    entries = np.array([drawn(snnc.Orthogonal(), (3, 3), seed) for seed in range(3000)])
    np.testing.assert_allclose(entries.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(entries.var(axis=0), 1 / 3, atol=0.03)


def test_log_normal_weights_are_positive_with_the_moments_of_the_law():
    found = drawn(snnc.LogNormal(-0.702, 0.9355), (400, 500)).astype(np.float64)
    assert found.min() > 0
    assert stats.kstest(found.ravel()[:20_000], stats.lognorm(0.9355, scale=math.exp(-0.702)).cdf).pvalue > 1e-3
    assert found.mean() == pytest.approx(math.exp(-0.702 + 0.9355**2 / 2), rel=0.02)


@pytest.mark.parametrize(
    ("connection", "wanted"),
    [
        (snnc.Conv(12, (3, 2), groups=3), (2 * 6, 12 * 6)),
        (snnc.Conv(12, 3), (6 * 9, 12 * 9)),
        ([snnc.Flatten(), snnc.Dense(12)], (600, 12)),
        ([snnc.Flatten(), snnc.Sparse(fan_in=30, outputs=12)], (30, 0.6)),
    ],
)
def test_connections_count_fans_as_pytorch_does(connection, wanted):
    seen = []

    class Spy:
        def draw(self, shape, fans, rng):
            seen.append((shape, fans))
            return np.zeros(shape, np.float32)

    parts = connection if isinstance(connection, list) else [connection]
    parts[-1] = type(parts[-1])(**{**vars(parts[-1]), "init": Spy(), "bias": False})
    net = snnc.Network()
    image = net.input((6, 10, 10))
    net.connect(image, net.population(net.shape_after(image, parts), snnc.LIF()), parts)
    ((shape, found),) = seen
    assert found == pytest.approx(wanted)
    if len(shape) > 1:
        assert found == fans(shape)


def test_a_bias_is_drawn_as_the_weights_or_as_that_of_a_layer_of_pytorch():
    def bias_of(**options):
        net = snnc.Network(seed=3)
        net.connect(net.input(25), net.population(400, snnc.LIF()), snnc.Dense(**options), name="w")
        return net.graph().operation("w").bias

    assert (bias_of(init=snnc.Constant(0.5)) == 0.5).all()
    assert bias_of(init=snnc.Normal(3.0)).std() == pytest.approx(3, rel=0.15)
    assert (bias_of(init=snnc.Normal(3.0), bias=snnc.Constant(-1.0)) == -1).all()
    for init in (snnc.Orthogonal(), snnc.XavierNormal(), snnc.KaimingUniform(9.0), np.ones((400, 25))):
        assert 0.19 < np.abs(bias_of(init=init)).max() <= 0.2
