"""Hypergraphs with and without structure."""

import numpy as np

from snnc.compiler.tiles.partition.hypergraph import Hypergraph


def planted(neurons, clusters, fan_out, inside, seed):
    """Clusters in shuffled order: (hypergraph, cluster of each vertex); each net is a neuron with its targets."""
    random = np.random.default_rng(seed)
    size = neurons // clusters
    sources = np.repeat(np.arange(neurons), fan_out)
    near = sources // size * size + random.integers(0, size, sources.size)
    targets = np.where(random.random(sources.size) < inside, near, random.integers(0, neurons, sources.size))
    place = random.permutation(neurons)
    nets, pins = np.concatenate([place[sources], place]), np.concatenate([place[targets], place])
    cluster = np.empty(neurons, np.int64)
    cluster[place] = np.arange(neurons) // size
    return Hypergraph.of(nets, pins, np.full(neurons, 0.02), np.ones(neurons)), cluster


def scattered(vertices, nets, pins, seed):
    """Nets of random pins, with random weights."""
    random = np.random.default_rng(seed)
    net = np.concatenate([np.arange(nets), random.integers(0, nets, pins)])
    pin = random.integers(0, vertices, len(net))
    return Hypergraph.of(net, pin, random.uniform(0.01, 1.0, nets), random.uniform(0.5, 3.0, vertices))
