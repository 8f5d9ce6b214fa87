"""Bytes of constants that vertices read: positions of parts of masks, of relays' pieces, of rows of weights, and of pieces of owners."""

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
"""Number of constants that define the part of a mask searched by a relay's worker."""


def constant_bytes(layout: Layout) -> Ints:
    """Return the bytes on every tile, excluding tables of indexed connections and positions of a loss's classes."""
    problem, workers = layout.problem, layout.problem.target.workers
    words: Ints = np.zeros(problem.target.tiles, dtype=np.int64)
    for source, relays in layout.relays.items():
        if source.external:
            continue
        rows = mask_rows(problem, source, layout.range_by_id(source.owner))
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
                words[layout.range_of(layer).tiles] += _runs(layout.range_by_id(link.target))
    for work in owned_work(layout, problem.network.layers) if problem.training else ():
        # Each worker's share of an owner's sum has the position and the length of every piece, or one entry if it has no piece.
        np.add.at(words, work.tiles, 2 * np.maximum(work.pieces, workers) + work.elements * work.places)
    for _, packing in packings(layout):
        np.add.at(words, packing.tiles, packing.numbers())
    return WORD * words


def _runs(where: TileRange) -> int:
    """Return the number of constants that describe the rows of weights of a replica, by runs of tiles with equally many neurons."""
    first = np.append(True, np.diff(where.neurons) != 0)
    return int((3 + column_groups(where.neurons, where.columns))[first].sum())
