"""Spikes of the published program's networks, by simulation."""

from __future__ import annotations

import numpy as np
import pytest

import snnc
from snnc.benchmarks.published import PublishedLayer, PublishedNet, moving_strokes, simulate
from snnc.benchmarks.published_nets import DECAY, GAIN, layer_names, weight_limit

RNG_SEED = 3


def small(capacities=(40, 30, 4)):
    layers = tuple(PublishedLayer(n, k, 0.0, 0.0) for n, k in zip((40, 30, 4), capacities, strict=True))
    return PublishedNet("small", 50, 50, 0.0, layers, 30, 6)


def test_spikes_are_those_of_the_reference_backend():
    """The same network, written in the Python DSL and run by the NumPy reference, spikes as often at every step."""
    net = small()
    x = np.random.default_rng(0).random((30, 6, 50)) < 0.1
    found = simulate(net, x, multiplier=4.0, seed=RNG_SEED)

    rng = np.random.default_rng(RNG_SEED)
    network = snnc.Network("same")
    source, delay = network.input(50), 0
    for name, inputs, outputs in zip(layer_names(net), net.widths[:-1], net.widths[1:], strict=True):
        weights = (2 * rng.random((inputs, outputs), np.float32) - 1) * np.float32(weight_limit(4.0, inputs))
        layer = network.population(outputs, snnc.LIF(beta=DECAY, reset="zero"), name=name)
        network.connect(source, layer, snnc.Dense(bias=False, init=np.float32(GAIN) * weights.T), delay=delay)
        network.output(layer, name=f"{name}_spikes")
        source, delay = layer, 1
    with snnc.compile(network) as session:
        outputs = session.run(x.astype(np.float32))
    for name, fired in zip(layer_names(net), found.fired, strict=True):
        np.testing.assert_array_equal(outputs[f"{name}_spikes"].sum(axis=-1), fired)
    assert found.fired[1].sum() > 50
    np.testing.assert_array_equal(found.inputs, x.sum(axis=-1))


def test_capacities_keep_the_lowest_ids_and_count_spikes_first():
    x = np.random.default_rng(0).random((30, 6, 50)) < 0.3
    free, tight = (simulate(small(c), x, multiplier=8.0, seed=RNG_SEED) for c in ((40, 30, 4), (3, 2, 4)))
    np.testing.assert_array_equal(tight.fired[0], free.fired[0])  # dropping changes what is sent, not what fires
    np.testing.assert_array_equal(tight.spikes[0], np.minimum(free.fired[0], 3))
    assert (tight.gradients[0] >= tight.spikes[0]).all()
    assert tight.gradients[0].max() == 3
    assert not np.array_equal(tight.fired[1], free.fired[1])


def test_the_readout_lets_every_neuron_take_gradients():
    found = simulate(small(), np.zeros((30, 6, 50), bool), multiplier=4.0, seed=0)
    assert (found.gradients[-1] == 4).all()
    assert not found.fired[-1].any()
    assert found.of(small()).layers[-1].gradients == 4


def test_strokes_have_the_statistics_of_a_saccade():
    x = moving_strokes(100, 12, seed=1)
    assert x.shape == (100, 12, 2312)
    per_step = x.sum(axis=2)
    assert 12.5 < per_step.mean() < 13.9  # 13.9 events; two on one pixel count once
    assert per_step.var() == pytest.approx(per_step.mean(), rel=0.2)  # Poisson
    touched = x.any(axis=0).sum(axis=1)
    assert (touched > 100).all()
    assert (touched < 1200).all()  # an edge, not the whole picture
    images = x.reshape(100, 12, 2, 34, 34).any(axis=(0, 1, 2))
    assert not images[0].any()
    assert not images[:, 0].any()
    np.testing.assert_array_equal(x, moving_strokes(100, 12, seed=1))
    assert not np.array_equal(x, moving_strokes(100, 12, seed=2))


# ---- StepProgram -> net ----------------------------------------------------------------------------------------------
