"""Neurons spread evenly over all tiles, in order."""

from __future__ import annotations

import numpy as np

from snnc.compiler.tiles.baselines.assignment import Assignment, LayerShare, split_layers
from snnc.compiler.tiles.blocks.grouping import Ints, neurons_per_tile


def each_layer(sizes: tuple[int, ...], tiles: int) -> Assignment:
    """Spread each layer separately, from tile 0 on; a layer with fewer neurons than tiles uses one tile per neuron."""
    return tuple(LayerShare(np.arange(min(n, tiles), dtype=np.int64), neurons_per_tile(n, min(n, tiles))) for n in sizes)


def one_after_the_other(sizes: tuple[int, ...], tiles: int) -> Assignment:
    """Line up the neurons of all layers, and cut this sequence into equal parts, one per tile."""
    return split_layers(in_order(sum(sizes), tiles), sizes)


def in_order(neurons: int, tiles: int) -> Ints:
    """Return the tile of each neuron when `neurons` are spread in order over `tiles`."""
    used = min(neurons, tiles)
    return np.repeat(np.arange(used, dtype=np.int64), neurons_per_tile(neurons, used))
