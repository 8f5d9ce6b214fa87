"""The project's own benchmark networks: W1, W1 without recurrence, W2, a convolutional net, a random and a clustered sparse net."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from snnc.benchmarks.benchmark import Benchmark
from snnc.benchmarks.published import PublishedLayer, PublishedNet
from snnc.compiler.neurons.library import LI, LIF
from snnc.frontends.dsl.connections import AvgPool, Conv, Dense, MaxPool, Sparse
from snnc.frontends.dsl.connections.base import Connection
from snnc.frontends.dsl.network import Network

INPUTS: Final = 700
CLASSES: Final = 20
SPARSE_NEURONS: Final = 10_000
FAN_OUT: Final = 40


def w_network(hidden: tuple[int, ...], *, recurrent: bool, name: str, inputs: int = INPUTS, classes: int = CLASSES) -> Network:
    """Return a network of LIF layers (beta 0.9, hard reset) of the sizes `hidden`, and a leaky readout."""
    net = Network(name)
    source = net.input(inputs, name="input")
    for i, neurons in enumerate(hidden):
        layer = net.population(neurons, LIF(beta=0.9, reset="zero"), name=f"hidden{i + 1}")
        net.connect(source, layer, Dense(seed=2 * i))
        if recurrent:
            net.connect(layer, layer, Dense(bias=False, seed=2 * i + 1), delay=1)
        source = layer
    readout = net.population(classes, LI(beta=0.9), name="readout")
    net.connect(source, readout, Dense(seed=2 * len(hidden)))
    return net


def dvs_convolution() -> Network:
    """Return a network for DVS Gesture at 32 x 32: two convolutions, a dense layer, 11 classes."""
    net = Network("dvs-conv")
    events = net.input((2, 32, 32), name="input")
    source = events
    stages: list[list[Connection]] = [[Conv(16, 5, stride=2, padding=2)], [MaxPool(2), Conv(32, 3, padding=1)]]
    for i, layers in enumerate(stages):
        maps = net.population(net.shape_after(source, layers), LIF(beta=0.9), name=f"maps{i + 1}")
        net.connect(source, maps, layers)
        source = maps
    hidden = net.population(256, LIF(beta=0.9), name="hidden")
    net.connect(source, hidden, [AvgPool(2), Dense()])
    readout = net.population(11, LI(beta=0.9), name="readout")
    net.connect(hidden, readout, Dense())
    return net


def random_sparse(neurons: int = SPARSE_NEURONS, fan_out: int = FAN_OUT, seed: int = 0) -> Network:
    """Return a network of 1,000 inputs, a recurrent population and 10 readout neurons.

    Each input and each neuron has random weights to `fan_out` random neurons of the population.
    """
    return _sparse("random-10k", neurons, fan_out, seed, _targets(neurons, neurons, fan_out, seed + 1))


def clustered_sparse(
    clusters: int = 16, neurons: int = SPARSE_NEURONS, fan_out: int = FAN_OUT, inside: float = 0.9, seed: int = 0
) -> Network:
    """Return a network like :func:`random_sparse`, but with clusters.

    A recurrent target is drawn from the neuron's own cluster with probability `inside`. Other targets are drawn from all neurons. The
    neurons of a cluster have random indices.
    """
    return _sparse("clusters-10k", neurons, fan_out, seed, _clusters(clusters, neurons, fan_out, inside, seed + 1))


def _sparse(name: str, neurons: int, fan_out: int, seed: int, recurrent: object) -> Network:
    net = Network(name, seed=seed)
    events = net.input(1000, name="input")
    pool = net.population(neurons, LIF(beta=0.9), name="pool")
    readout = net.population(10, LI(beta=0.9), name="readout")
    net.connect(events, pool, Sparse(_targets(1000, neurons, fan_out, seed)))
    net.connect(pool, pool, Sparse(recurrent), delay=1)
    net.connect(pool, readout, Dense())
    return net


def _clusters(clusters: int, neurons: int, fan_out: int, inside: float, seed: int) -> object:
    """Return weights [neurons, neurons] with `fan_out` random targets in each column; weights of repeated targets are added."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    cluster, sources = rng.permutation(np.arange(neurons) % clusters), np.repeat(np.arange(neurons), fan_out)
    by_cluster, size = np.argsort(cluster, kind="stable"), neurons // clusters
    in_cluster = by_cluster[cluster[sources] * size + rng.integers(0, size, sources.size)]
    targets = np.where(rng.random(sources.size) < inside, in_cluster, rng.integers(0, neurons, sources.size))
    values = rng.normal(0, 1 / np.sqrt(fan_out), sources.size).astype(np.float32)
    weights = csr_array((values, (targets, sources)), shape=(neurons, neurons))
    weights.sum_duplicates()
    return weights


def _targets(sources: int, targets: int, fan_out: int, seed: int) -> object:
    """Return weights [targets, sources] with `fan_out` entries in each column, at random places."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.choice(targets, fan_out, replace=False) for _ in range(sources)])
    columns = np.repeat(np.arange(sources), fan_out)
    values = rng.normal(0, 1 / np.sqrt(fan_out), rows.size).astype(np.float32)
    return csr_array((values, (rows, columns)), shape=(targets, sources))


def _w(hidden: tuple[int, ...], recurrent: bool, steps: int, batch: int, density: float, name: str) -> Benchmark:
    activity = {"input": density, **{f"hidden{i + 1}": ASSUMED for i in range(len(hidden))}}
    published = None if recurrent else _published(hidden, steps, batch, density, name)
    return _everyday(partial(w_network, hidden, recurrent=recurrent, name=name), steps, batch, activity, name, published)


ASSUMED: Final = 0.05
"""Assumed number of spikes per neuron and step, as in :mod:`snnc.compiler.tiles.schedule.buses`."""


def _published(hidden: tuple[int, ...], steps: int, batch: int, density: float, name: str) -> PublishedNet:
    """Return the most similar net that the published program can run.

    It differs in one-step delays, a spiking readout, capacities of 10 % of a hidden layer, no biases, and as many gradients as spikes.
    """
    layers = tuple(PublishedLayer(n, max(2, n // 10), spikes=ASSUMED * n, gradients=ASSUMED * n) for n in hidden)
    spikes = density * INPUTS
    return PublishedNet(
        name, INPUTS, min(INPUTS, int(2 * spikes)), spikes, (*layers, PublishedLayer(CLASSES, 2, spikes=2.0, gradients=2.0)), steps, batch
    )


def _everyday(
    build: Callable[[], Network], steps: int, batch: int, activity: Mapping[str, float], name: str, published: PublishedNet | None = None
) -> Benchmark:
    return Benchmark(
        name=name,
        suite="everyday",
        target="gc200",
        chips=1,
        steps=steps,
        batch=batch,
        loss="ce_mean_membrane",
        optimizer="adam",
        surrogate="fast_sigmoid:25",
        build=build,
        activity=activity,
        activity_source="assumed",
        capacity={},
        published=published,
    )


EVERYDAY: Final[Mapping[str, Callable[[str], Benchmark]]] = {
    "w1": partial(_w, (256,), True, 100, 64, 0.05),
    "w1-ff": partial(_w, (256,), False, 100, 64, 0.05),
    "w2": partial(_w, (1024, 1024), True, 250, 64, 0.03),
    "dvs-conv": partial(_everyday, dvs_convolution, 50, 16, {"input": 0.02, "maps1": ASSUMED, "maps2": ASSUMED, "hidden": ASSUMED}),
    "random-10k": partial(_everyday, random_sparse, 100, 16, {"input": 0.02, "pool": 0.02}),
    "clusters-10k": partial(_everyday, clustered_sparse, 100, 16, {"input": 0.02, "pool": 0.02}),
}
"""Functions that return a benchmark, by its name; they are called with the name."""
