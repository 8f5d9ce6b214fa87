"""Assignments of neurons to tiles, evenly in order or at random: the number of neurons of each layer on each tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Ints, neurons_per_tile


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
    """Return the tile of each neuron when `neurons` are spread in order over `tiles`."""
    used = min(neurons, tiles)
    return np.repeat(np.arange(used, dtype=np.int64), neurons_per_tile(neurons, used))
