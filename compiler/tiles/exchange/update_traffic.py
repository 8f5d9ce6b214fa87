"""Exchange before the update: shares of gradients, the learning rate and the clipping factor.

U1 is the superstep of the update in docs/decisions/0001-poplar-program.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.blocks.grouping import column_groups
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout, between_replicas, send_to_all
from snnc.compiler.tiles.mapped.learned import learned_rows, learned_scalars

RATES: Final = 2 * FLOAT
"""Bytes of the two numbers that every update reads: the learning rate and a bias correction (of Adam)."""


def gradients_to_shares(layout: Layout) -> ExchangeTraffic:
    """Return the exchange before U1: the learning rate and shares of gradients."""
    traffic = rates_to_updates(layout)
    traffic.merge(shares_of_gradients(layout))
    return traffic


def rates_to_updates(layout: Layout) -> ExchangeTraffic:
    """Return the exchange in which tiles read the learning rate.

    Without a loss scale, it is empty if a later superstep sends the rate with the clipping factor.
    """
    traffic = ExchangeTraffic.none(layout.problem)
    if not layout.problem.network.square or layout.problem.network.scaled:
        _add_rates(layout, traffic, RATES)
    return traffic


def shares_of_gradients(layout: Layout) -> ExchangeTraffic:
    """Return the exchange in which replicas gather the gradients of their shares.

    In addition, the first tile of each population gathers the gradients of its scalar parameters.
    """
    problem, traffic = layout.problem, ExchangeTraffic.none(layout.problem)
    for layer in problem.network.layers:
        where = layout.ranges[layer.id]
        for rows in learned_rows(layer):
            between_replicas(layout, traffic, where, rows, gathers=True)
        if learned_scalars(layer):
            groups = np.tile(column_groups(where.neurons, where.columns), where.replicas)
            shares = problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples)
            away = where.tiles != where.tiles[0]
            moved = learned_scalars(layer) * FLOAT * int((groups * shares)[away].sum())
            traffic.add(int(where.tiles[0]), moved, learned_scalars(layer) * int(away.sum()))
            for chip, size in layout.by_chip(where.tiles, learned_scalars(layer) * FLOAT * groups * shares).items():
                traffic.flows.send(chip, (layout.chip_of(int(where.tiles[0])),), size)
    return traffic


def factor_to_updates(layout: Layout) -> ExchangeTraffic:
    """Return the exchange before an update that clips to a norm: tiles with learned parameters read the learning rate and the factor."""
    traffic = ExchangeTraffic.none(layout.problem)
    for size in (RATES, FLOAT):
        _add_rates(layout, traffic, size)
    return traffic


def _add_rates(layout: Layout, traffic: ExchangeTraffic, size: int) -> None:
    """Add the copy of `size` bytes, such as the learning rate, from tile 0 to all tiles that update parameters."""
    updates = np.zeros(layout.problem.target.tiles, dtype=bool)
    for layer in layout.problem.network.layers:
        if learned_rows(layer):
            updates[layout.ranges[layer.id].tiles] = True
    for found in layout.owned if layout.exact else ():
        updates[found.owners.tile[found.owners.learned]] = True
    updates[0] = False
    more = FLOAT if size == RATES and layout.problem.network.scaled else 0  # the reciprocal loss scale
    send_to_all(layout, traffic, 0, np.flatnonzero(updates), size + more)
    if size == RATES and layout.problem.network.rounding == "stochastic":
        send_to_all(layout, traffic, 0, np.flatnonzero(updates), FLOAT)  # the number of the update
