"""Assignments of neurons to tiles: the number of neurons of each layer on each tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Ints


@dataclass(frozen=True, eq=False)
class LayerShare:
    """Neurons of one layer on tiles: `tiles` in ascending order, and the number of `neurons` (1 or more) on each of them.

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
    """Split the tiles of all neurons, ordered by layer, into one share per layer."""
    return tuple(share(part) for part in np.split(tile_of_neuron, np.cumsum(sizes)[:-1]))
