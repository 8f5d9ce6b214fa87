"""Data exchanged with the tiles that compute losses: records of samples, their adjoints, and the losses themselves.

L1 (losses of samples) and L2 (their sum) are supersteps of docs/decisions/0001-poplar-program.md.
"""

from __future__ import annotations

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.blocks.grouping import column_groups
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout, send_to_all


def factor_to_losses(layout: Layout) -> ExchangeTraffic:
    """Return the exchange before L1: the tiles of losses receive the loss scale; empty without a loss scale."""
    traffic = ExchangeTraffic.none(layout.problem)
    if layout.problem.network.scaled:
        tiles = np.unique(np.array(layout.loss_tiles, dtype=np.int64))
        send_to_all(layout, traffic, 0, tiles[tiles != 0], FLOAT)
    return traffic


def records_or_adjoints(layout: Layout, *, to_loss: bool) -> ExchangeTraffic:
    """Return the exchange of records from blocks to the tiles of the losses before L1, or of adjoints back after L1 if not `to_loss`."""
    problem, traffic = layout.problem, ExchangeTraffic.none(layout.problem)
    if problem.network.loss_layer is None:
        return traffic
    where = layout.ranges[problem.network.loss_layer]
    size, groups = problem.steps * FLOAT * where.tile_neurons, column_groups(where.tile_neurons, where.columns)
    # Records lie group by group: if a tile has several samples, those of one sample are one piece per group.
    pieces = np.where(where.tile_samples == 1, np.minimum(groups, 1), groups)
    losses, replica = np.array(layout.loss_tiles, dtype=np.int64), np.repeat(np.arange(where.replicas), [n for _, n in where.samples])
    local_of_sample, local = where.contains(losses)[np.arange(len(losses)), replica], np.zeros((2, problem.target.tiles), dtype=np.int64)
    local[:, where.tiles] = size, pieces
    local_size, local_pieces = local[:, losses] * local_of_sample
    moved = size.reshape(where.replicas, -1).sum(axis=1)[replica] - local_size
    if to_loss:
        np.add.at(traffic.received, losses, moved)
        np.add.at(traffic.fragments, losses, pieces.reshape(where.replicas, -1).sum(axis=1)[replica] - local_pieces)
        traffic.sent[where.tiles] += size * where.tile_samples
        np.subtract.at(traffic.sent, losses, local_size)
    else:
        traffic.add(where.tiles, size * where.tile_samples, pieces * where.tile_samples)
        np.subtract.at(traffic.received, losses, local_size)
        np.subtract.at(traffic.fragments, losses, local_pieces)
        np.add.at(traffic.sent, losses, moved)
    for r, (first, count) in enumerate(where.samples if layout.several_chips else ()):
        parts = layout.by_chip(where.of(r), problem.steps * FLOAT * where.neurons)
        for tile in layout.loss_tiles[first : first + count]:
            for chip, part in parts.items():
                sender, receiver = (chip, layout.chip_of(tile)) if to_loss else (layout.chip_of(tile), chip)
                traffic.flows.send(sender, (receiver,), part)
    return traffic


def losses_to_one_tile(layout: Layout) -> ExchangeTraffic:
    """Return the exchange before L2: the losses of all samples move to tile 0."""
    traffic = ExchangeTraffic.none(layout.problem)
    tiles = np.array(layout.loss_tiles)
    away = int((tiles != 0).sum())
    size = FLOAT * layout.problem.loss_parts
    traffic.add(0, size * away, away)
    traffic.sent[tiles[tiles != 0]] += size
    for tile in tiles.tolist():
        traffic.flows.send(layout.chip_of(tile), (0,), size)
    return traffic
