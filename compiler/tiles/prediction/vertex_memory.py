"""Bytes of the constants that vertices read, such as positions in masks and in rows of weights."""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Ints, ceil_div, column_groups
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.exchange.indexed_traffic import owned_work
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.gradients.packing import packings
from snnc.compiler.tiles.relays.relay_cycles import mask_rows

WORD: Final = 4
PIECE: Final = 9
"""Number of constants that define one piece of a mask, which a worker of a relay searches."""


def constant_bytes(layout: Layout) -> Ints:
    """Return the bytes of constants on every tile, without tables of indexed connections and positions of outputs that a loss reads."""
    problem, workers = layout.problem, layout.problem.target.workers
    words: Ints = np.zeros(problem.target.tiles, dtype=np.int64)
    for source, relays in layout.relays.items():
        if source.external:
            continue
        rows = mask_rows(problem, source, layout.ranges[source.owner])
        tiles, samples = np.array([(relay.tile, relay.samples) for relay in relays], dtype=np.int64).T
        if source.kind != "spikes":
            np.add.at(words, tiles, rows.tiles + 1)
            continue
        worker = np.arange(workers)[:, None]
        pieces = (ceil_div((worker + 1) * samples, workers) - worker * samples // workers).sum(axis=0)
        np.add.at(words, tiles, rows.all + 2 * (workers + 1 + PIECE * pieces))
    for layer in problem.network.layers if problem.training else ():
        for link in layer.outgoing:
            if problem.copies(link) and link.dense:
                words[layout.ranges[layer.id].tiles] += _runs(layout.ranges[link.target])
    for work in owned_work(layout, problem.network.layers) if problem.training else ():
        # A worker that sums pieces for an owner reads the position and the length of each of its pieces, or one entry if it has none.
        np.add.at(words, work.tiles, 2 * np.maximum(work.pieces, workers) + work.elements * work.places)
    for _, packing in packings(layout):
        np.add.at(words, packing.tiles, packing.numbers())
    return WORD * words


def _runs(where: TileRange) -> int:
    """Return the number of constants that describe rows of weights: one group of constants per run of tiles with equally many neurons."""
    first = np.append(True, np.diff(where.neurons) != 0)
    return int((3 + column_groups(where.neurons, where.columns))[first].sum())
