"""The tiles of each layer of a plan, and the layer, neurons and replica on every tile.

A replica is a copy of a layer on separate tiles, for a share of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from snnc.compiler.ir.plan import Block, Plan
from snnc.compiler.tiles.blocks.grouping import Ints, ceil_div

FREE, RELAYED = -1, -2
"""Markers of tiles without neurons: FREE tiles are unused, RELAYED tiles have only relays and losses."""


@dataclass(frozen=True, eq=False)
class BatchGroup:
    """A replica of a layer: `tiles` that process all neurons of the layer for the samples ``[first, first + count)``.

    `at` contains the indices of these tiles in the arrays of :class:`LayerPlace`.
    """

    first: int
    count: int
    tiles: Ints
    at: Ints


@dataclass(frozen=True, eq=False)
class LayerPlace:
    """Tiles of one layer, with the neurons and samples on each."""

    tiles: Ints
    """The tiles, ascending; the other arrays are parallel to them."""
    neurons: Ints
    words: Ints
    """Number of 32-bit words of a tile's spike masks for one sample. A word contains the bits of up to 32 neurons of one column group. All
    tiles have equally many words, enough for the largest number of column groups and the largest group."""
    groups: tuple[BatchGroup, ...]
    """The replicas, in the order of their samples."""


@dataclass(frozen=True, eq=False)
class LayerPlaces:
    """Tiles of all layers (parallel to ``plan.populations``), and data on every tile of the machine."""

    layers: tuple[LayerPlace, ...]
    owner: Ints
    """Index of the layer on each tile (the first if several share it), RELAYED or FREE."""
    neurons: Ints
    """Number of neurons of all layers on each tile."""
    replica: Ints
    """Index of the owner's replica on each tile; -1 on tiles without a layer."""
    shared: int
    """Number of tiles that several layers share."""

    @property
    def used(self) -> Ints:
        """Tiles in use."""
        return np.flatnonzero(self.owner != FREE)


def locate(plan: Plan) -> LayerPlaces:
    """Find the tiles of every layer from its blocks."""
    tiles = plan.target.tiles
    layers = tuple(_layer(p.blocks) for p in plan.populations)
    owner = np.full(tiles, FREE, dtype=np.int64)
    replica = np.full(tiles, -1, dtype=np.int64)
    neurons, holders = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    owner[[r.tile for b in plan.buses for r in b.relays] + [*plan.loss_tiles]] = RELAYED
    for index in reversed(range(len(layers))):
        layer = layers[index]
        owner[layer.tiles] = index
        neurons[layer.tiles] += layer.neurons
        holders[layer.tiles] += 1
        for number, group in enumerate(layer.groups):
            replica[group.tiles] = number
    return LayerPlaces(layers, owner, neurons, replica, int((holders > 1).sum()))


def _layer(blocks: Sequence[Block]) -> LayerPlace:
    numbers = chain.from_iterable((b.tile, b.first, b.count, b.sample, b.samples) for b in blocks)
    table = np.fromiter(numbers, dtype=np.int64, count=5 * len(blocks)).reshape(-1, 5)
    tiles, at = np.unique(table[:, 0], return_inverse=True)
    at = at.reshape(-1)
    start = np.full(len(tiles), np.iinfo(np.int64).max)
    stop = np.zeros(len(tiles), dtype=np.int64)
    np.minimum.at(start, at, table[:, 3])
    np.maximum.at(stop, at, table[:, 3] + table[:, 4])
    _, once = np.unique(table[:, :2], axis=0, return_index=True)
    neurons = np.zeros(len(tiles), dtype=np.int64)
    np.add.at(neurons, at[once], table[once, 2])
    groups_of_tile = np.bincount(at[once], minlength=len(tiles))
    words = np.full(len(tiles), groups_of_tile.max(initial=0) * ceil_div(table[:, 2].max(initial=0), 32))
    spans = np.unique(np.stack([start, stop], axis=1), axis=0)
    places = (np.flatnonzero((start == a) & (stop == b)) for a, b in spans)
    groups = tuple(BatchGroup(int(a), int(b - a), tiles[at], at) for (a, b), at in zip(spans, places, strict=True))
    return LayerPlace(tiles, neurons, words, groups)
