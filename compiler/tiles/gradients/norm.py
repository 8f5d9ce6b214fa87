"""Norm of all gradients: supersteps that sum squares over each tile, each chip (if there are several) and in total."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.blocks.grouping import Ints
from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.indexed_traffic import owned_work
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout, parameter_groups, shares_of
from snnc.compiler.tiles.mapped.learned import learned_rows, learned_scalars
from snnc.compiler.tiles.supersteps.superstep import SuperstepDraft
from snnc.compiler.tiles.vertices.loss_vertices import loss_sum
from snnc.compiler.tiles.vertices.parameter_vertices import clip, judge_update

SQUARES: Final = "update: squares"
TILES: Final = "update: norm of tiles"
CHIPS: Final = "update: norm of chips"
NORM: Final = "update: norm"
JUDGED: Final = "update: loss scale"
"""Names of the supersteps: squares; their sums by tile, by chip and in total; and the adaptation of the loss scale."""


def norm_steps(layout: Layout, squares: Load, gradients: ExchangeTraffic, shares: Ints) -> Iterator[SuperstepDraft]:
    """Yield the supersteps that compute the clipping factor of the update from the gradients and, with a loss scale, adapt this scale.

    `squares` is the load of the vertices that sum squares, `shares` their number on each tile, `gradients` the exchange before them.
    """
    problem, tiles = layout.problem, np.flatnonzero(shares)
    adds = loss_sum(problem.costs)
    yield SuperstepDraft(SQUARES, "update", 1, squares, gradients)
    load = Load(problem)
    load.add_vertices(tiles, adds, {"count": shares[tiles] * problem.target.workers})
    yield SuperstepDraft(TILES, "update", 1, load, ExchangeTraffic.none(problem))
    if layout.several_chips:
        load, heads, number = Load(problem), *heads_of_chips(layout, tiles)
        load.add_vertices(heads, adds, {"count": number})
        yield SuperstepDraft(CHIPS, "update", 1, load, _to_heads(layout, tiles, np.repeat(heads, number)))
        tiles = heads
    load = Load(problem)
    load.add_vertices(0, clip(problem.costs), {"count": len(tiles)})
    yield SuperstepDraft(NORM, "update", 1, load, _to_heads(layout, tiles, np.zeros(len(tiles), dtype=np.int64)))
    if problem.network.scaled:
        load = Load(problem)
        load.add_vertices(0, judge_update(problem.costs), {})
        yield SuperstepDraft(JUDGED, "update", 1, load, ExchangeTraffic.none(problem))


def squared_shares(layout: Layout) -> Ints:
    """Return the number of vertices on each tile that sum squares of gradients, each for a share of a parameter."""
    number = np.zeros(layout.problem.target.tiles, dtype=np.int64)
    for layer in layout.problem.network.layers:
        where = layout.ranges[layer.id]
        for rows in learned_rows(layer):
            for groups, elements in parameter_groups(where, rows):
                number[where.tiles] += np.tile(groups, where.replicas) * (shares_of(where, elements).ravel() > 0)
        number[where.tiles[0]] += learned_scalars(layer)
    for tiles, *_ in owned_work(layout, layout.problem.network.layers):
        np.add.at(number, tiles, 1)
    return number


def heads_of_chips(layout: Layout, tiles: Ints) -> tuple[Ints, Ints]:
    """Return the first of `tiles` (in ascending order) on each chip, and the number of `tiles` on that chip."""
    _, first, number = np.unique(tiles // layout.problem.target.tiles_per_chip, return_index=True, return_counts=True)
    return tiles[first], number


def norm_bytes(layout: Layout, shares: Ints) -> Ints:
    """Return the bytes that each tile needs for the norm: sums of squares of workers and shares, tiles and chips, and the factor."""
    found: Ints = FLOAT * (shares * layout.problem.target.workers + (shares > 0))
    found[0] += FLOAT
    if layout.several_chips:
        found[heads_of_chips(layout, np.flatnonzero(shares))[0]] += FLOAT
    return found


def _to_heads(layout: Layout, tiles: Ints, heads: Ints) -> ExchangeTraffic:
    """Return the exchange in which each of `tiles` sends one number to the corresponding tile of `heads`."""
    traffic = ExchangeTraffic.none(layout.problem)
    away = tiles != heads
    np.add.at(traffic.received, heads[away], FLOAT)
    np.add.at(traffic.fragments, heads[away], 1)
    traffic.sent[tiles[away]] += FLOAT
    for tile, head in zip(tiles[away].tolist(), heads[away].tolist(), strict=True):
        traffic.flows.send(layout.chip_of(tile), (layout.chip_of(head),), FLOAT)
    return traffic
