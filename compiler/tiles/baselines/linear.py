"""Neurons spread evenly over all tiles, in order."""

from __future__ import annotations

import numpy as np

from snnc.compiler.tiles.baselines.deal import Deal, LayerShare, cut
from snnc.compiler.tiles.placement.grouping import Ints, neurons_per_tile


def each_layer(sizes: tuple[int, ...], tiles: int) -> Deal:
    """Every layer over all tiles from tile 0 on, at least a neuron on each that it uses."""
    return tuple(LayerShare(np.arange(min(n, tiles), dtype=np.int64), neurons_per_tile(n, min(n, tiles))) for n in sizes)


def one_after_the_other(sizes: tuple[int, ...], tiles: int) -> Deal:
    """All layers as one row of neurons that is cut into equal runs."""
    return cut(in_order(sum(sizes), tiles), sizes)


def in_order(neurons: int, tiles: int) -> Ints:
    """Tile of each neuron of a row that is spread over `tiles`."""
    used = min(neurons, tiles)
    return np.repeat(np.arange(used, dtype=np.int64), neurons_per_tile(neurons, used))
