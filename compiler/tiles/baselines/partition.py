"""Assignments of neurons to tiles: the number of neurons of each layer on each tile.

Neurons are spread evenly in order, at random, or by graph partitioning: nodes are runs of neurons, edges are the traffic between them, and
each part is a tile.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Floats, Ints, neurons_per_tile
from snnc.compiler.tiles.errors import NoPartitionerError
from snnc.compiler.tiles.partition.child_process import run_partitioner

MAX_EDGES: Final = 4_000_000
"""Maximum number of edges of a graph; beyond it, nodes are longer runs of neurons."""
NODES_PER_TILE: Final = 4
"""Number of runs per tile, unless there are too few neurons or too many edges."""
UNITS: Final = 1000
"""Integer weight of a node with average work, and of the edge with the most bytes."""


@dataclass(frozen=True, eq=False)
class LayerShare:
    """Number of `neurons` of one layer on each of `tiles`, which are in ascending order; every tile has at least one neuron.

    Neurons of a layer are interchangeable, so the neurons of a tile get consecutive numbers.
    """

    tiles: Ints
    neurons: Ints


Assignment: TypeAlias = tuple[LayerShare, ...]
"""One share for each layer of the network, in order."""


def share(tile_of_neuron: Ints) -> LayerShare:
    """Count the neurons on each tile."""
    tiles, neurons = np.unique(tile_of_neuron, return_counts=True)
    return LayerShare(tiles.astype(np.int64), neurons.astype(np.int64))


def split_layers(tile_of_neuron: Ints, sizes: tuple[int, ...]) -> Assignment:
    """Return the share of each layer; `tile_of_neuron` lists the neurons of all layers, layer by layer."""
    return tuple(share(part) for part in np.split(tile_of_neuron, np.cumsum(sizes)[:-1]))


def each_layer(sizes: tuple[int, ...], tiles: int) -> Assignment:
    """Spread each layer evenly over all tiles; a layer with fewer neurons than tiles uses one tile per neuron, from tile 0 on."""
    return tuple(LayerShare(np.arange(min(n, tiles), dtype=np.int64), neurons_per_tile(n, min(n, tiles))) for n in sizes)


def one_after_the_other(sizes: tuple[int, ...], tiles: int) -> Assignment:
    """Line up the neurons of all layers, and cut this sequence into equal parts, one per tile."""
    return split_layers(_in_order(sum(sizes), tiles), sizes)


def at_random(sizes: tuple[int, ...], tiles: int, rng: np.random.Generator) -> Assignment:
    """Assign equally many neurons to each tile at random; if there are fewer neurons than tiles, the used tiles are random too."""
    return split_layers(rng.permutation(rng.permutation(tiles)[_in_order(sum(sizes), tiles)]), sizes)


def runs_at_random(sizes: tuple[int, ...], tiles: int, rng: np.random.Generator) -> Assignment:
    """Cut the list of all neurons into equal runs and put each on a separate random tile."""
    return split_layers(rng.permutation(tiles)[_in_order(sum(sizes), tiles)], sizes)


def _in_order(neurons: int, tiles: int) -> Ints:
    used = min(neurons, tiles)
    return np.repeat(np.arange(used, dtype=np.int64), neurons_per_tile(neurons, used))


@dataclass(frozen=True)
class NeuronFlow:
    """Traffic from layer `source` to layer `target` and back: `size` is the bytes per step for each pair of source and target neuron."""

    source: int
    target: int
    size: float


@dataclass(frozen=True, eq=False)
class Runs:
    """Nodes of the graph, each a run of neurons: its `layer`, its number of `neurons`, and its `work`."""

    layer: Ints
    neurons: Ints
    work: Floats


def make_runs(sizes: tuple[int, ...], works: tuple[float, ...], flows: tuple[NeuronFlow, ...], tiles: int) -> Runs:
    """Cut layers into about :data:`NODES_PER_TILE` runs per tile, or fewer if the graph would have more than :data:`MAX_EDGES` edges."""
    length = max(1.0, sum(sizes) / (NODES_PER_TILE * tiles))
    while sum(math.ceil(sizes[f.source] / length) * math.ceil(sizes[f.target] / length) for f in flows) > MAX_EDGES:
        length *= 1.25
    layers, neurons = [], []
    for index, size in enumerate(sizes):
        parts = math.ceil(size / length)
        layers.append(np.full(parts, index, dtype=np.int64))
        bounds: Ints = np.linspace(0, size, parts + 1).astype(np.int64)
        neurons.append(bounds[1:] - bounds[:-1])
    layer, count = np.concatenate(layers), np.concatenate(neurons)
    return Runs(layer, count, count * np.asarray(works)[layer])


def make_graph(runs: Runs, flows: tuple[NeuronFlow, ...]) -> tuple[Ints, Ints, Ints]:
    """Return the adjacency lists of all nodes: start of each node's list, neighbours, integer weights of the edges."""
    from scipy.sparse import coo_array

    sources, targets, sizes = [], [], []
    for flow in flows:
        a, b = np.nonzero(runs.layer == flow.source)[0], np.nonzero(runs.layer == flow.target)[0]
        pairs = np.meshgrid(a, b, indexing="ij")
        sources.append(pairs[0].ravel())
        targets.append(pairs[1].ravel())
        sizes.append(flow.size * np.outer(runs.neurons[a], runs.neurons[b]).ravel())
    nodes = len(runs.layer)
    if not flows:
        return np.zeros(nodes + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    one_way = coo_array((np.concatenate(sizes), (np.concatenate(sources), np.concatenate(targets))), shape=(nodes, nodes)).tocsr()
    symmetric = (one_way + one_way.T).tocsr()
    symmetric.setdiag(0)
    symmetric.eliminate_zeros()
    scale = UNITS / max(float(symmetric.data.max(initial=0.0)), 1e-12)
    weights = np.maximum(np.rint(symmetric.data * scale), 1).astype(np.int64)
    return symmetric.indptr.astype(np.int64), symmetric.indices.astype(np.int64), weights


def metis(runs: Runs, flows: tuple[NeuronFlow, ...], sizes: tuple[int, ...], tiles: int, seed: int, *, recursive: bool) -> Assignment:
    """Let METIS choose the tile of every node; raise a NoPartitionerError if pymetis is not installed."""
    if not has_metis():
        raise NoPartitionerError(
            "the strategy 'metis' needs pymetis, which is not installed: pip install 'snnc[partition]'; 'greedy' works without it."
        )
    start, neighbours, edges = make_graph(runs, flows)
    work = np.maximum(np.rint(runs.work * UNITS / runs.work.mean()), 1).astype(np.int64)
    parts = run_partitioner(
        "metis", start=start, neighbours=neighbours, work=work, edges=edges, parts=min(tiles, len(work)), recursive=recursive, seed=seed
    )
    return split_layers(np.repeat(parts, runs.neurons), sizes)


def has_metis() -> bool:
    """Return whether pymetis is installed."""
    from importlib.util import find_spec

    return find_spec("pymetis") is not None


def greedy(runs: Runs, sizes: tuple[int, ...], tiles: int, tiles_per_chip: int) -> Assignment:
    """Divide the nodes, in order, into parts of about equal work, one per chip.

    On each chip, assign nodes one by one to the least loaded tile, those with the most work first.
    """
    chips = -(-tiles // tiles_per_chip)
    middle = np.cumsum(runs.work) - runs.work / 2
    chip_of = np.minimum((middle / runs.work.sum() * chips).astype(np.int64), chips - 1)
    parts = np.zeros(len(runs.work), dtype=np.int64)
    for chip in range(chips):
        free = [(0.0, tile) for tile in range(chip * tiles_per_chip, min((chip + 1) * tiles_per_chip, tiles))]
        nodes = np.nonzero(chip_of == chip)[0]
        for node in nodes[np.argsort(-runs.work[nodes], kind="stable")]:
            load, tile = heapq.heappop(free)
            parts[node] = tile
            heapq.heappush(free, (load + float(runs.work[node]), tile))
    return split_layers(np.repeat(parts, runs.neurons), sizes)
