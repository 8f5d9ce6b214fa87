"""Copies of parameters that follow an update: to the other replicas, to tiles that share a number, to the sources of connections."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.mapping.grouping import Ints, column_groups
from snnc.compiler.mapping.network import Link, learned_rows
from snnc.compiler.mapping.tile_range import TileRange
from snnc.compiler.mapping.traffic import FLOAT, Layout, Traffic, between_replicas, send_to_all, shared_tiles

LOCAL_START: Final = 288.0
"""Tile cycles of a copy inside a tile beside its bytes, and bytes of a cycle: Poplar profiles (facts on the machine)."""
LOCAL_BYTES: Final = 8.0


@dataclass(frozen=True, eq=False)
class Move:
    """One copy: what it exchanges, and the cycles of what stays on its tile."""

    traffic: Traffic
    local: float


def local_copy_cycles(size: float) -> float:
    """Tile cycles of a copy of `size` bytes inside a tile; 0 for none."""
    return LOCAL_START + math.ceil(size / LOCAL_BYTES) if size > 0 else 0.0


def weights_to_replicas(layout: Layout) -> Iterator[Move]:
    """A copy for each learned parameter of a replicated population: shares that were updated go to all other replicas."""
    for layer in layout.problem.network.layers:
        where = layout.range_of(layer)
        for rows in learned_rows(layer) if where.replicas > 1 else ():
            traffic = Traffic.none(layout.problem)
            between_replicas(layout, traffic, where, rows, gathers=False)
            yield Move(traffic, 0.0)


def copies_to_readers(layout: Layout) -> Iterator[Move]:
    """A copy for each number that all neurons share, and for the rows of each connection whose source needs a gradient."""
    problem = layout.problem
    for layer in problem.network.layers:
        where = layout.range_of(layer)
        shared = layer.scalar_parameters + sum(
            link.one_to_one and link.weight_elements == 1 and layer.neurons > 1 for link in layer.incoming
        )
        for _ in range(shared):
            yield _shared(layout, int(where.tiles[0]), where)
    for link in problem.network.links if problem.training else ():
        if problem.copies(link) and link.weight_elements and link.indexed is None:
            source = layout.range_by_id(link.source.owner)
            target = layout.range_by_id(link.target)
            if link.dense:
                yield _rows(layout, link, source, target)
            elif link.weight_elements == 1:
                yield _shared(layout, int(target.tiles[0]), source)
            else:
                yield _pairs(layout, source, target)


def _shared(layout: Layout, home: int, where: TileRange) -> Move:
    """One number, once for each column group."""
    traffic, groups = Traffic.none(layout.problem), np.tile(column_groups(where.neurons, where.columns), where.replicas)
    away = where.tiles != home
    send_to_all(layout, traffic, home, where.tiles[away], FLOAT)
    traffic.add(where.tiles, FLOAT * (groups - 1) * away, (groups - 1) * away)
    return Move(traffic, local_copy_cycles(FLOAT * int(groups[~away].sum())))


def _rows(layout: Layout, link: Link, source: TileRange, target: TileRange) -> Move:
    """Each source neuron's row gathers the columns of every column group of the target, the last of an odd number from another place."""
    traffic = Traffic.none(layout.problem)
    pieces, columns = _row_pieces(target), target.neurons
    stays = 0
    for r in range(source.replicas):
        tiles, origin = source.of(r), target.of(r * target.replicas // source.replicas)
        whole = len(origin) == 1 and int(pieces[0]) == 1
        rows = np.minimum(source.neurons, 1) if whole else source.neurons
        traffic.add(tiles, FLOAT * source.neurons * int(columns.sum()), rows * int(pieces.sum()))
        both, mine, own = shared_tiles(tiles, origin)
        traffic.add(both, -FLOAT * source.neurons[mine] * columns[own], -rows[mine] * pieces[own])
        if len(both):
            stays = max(stays, int((FLOAT * source.neurons[mine] * columns[own]).max()))
        for chip, neurons in layout.by_chip(tiles, source.neurons).items() if layout.several_chips else ():
            for home, part in layout.by_chip(origin, target.neurons).items():
                traffic.flows.send(home, (chip,), FLOAT * neurons * part)
    traffic.sent[target.tiles] += FLOAT * link.inputs * target.tile_neurons * min(1, source.replicas / target.replicas)
    return Move(traffic, local_copy_cycles(stays))


def _row_pieces(target: TileRange) -> Ints:
    """Pieces of a row on each tile of a replica: one for each column group, two where an odd number of columns holds a pair."""
    groups = column_groups(target.neurons, target.columns)
    size, larger = target.neurons // groups, target.neurons % groups

    def split(columns: Ints) -> Ints:
        found: Ints = np.where((columns % 2 == 1) & (columns > 1), 2, 1).astype(np.int64)
        return found

    return np.asarray(larger * split(size + 1) + (groups - larger) * split(size), dtype=np.int64)


def _pairs(layout: Layout, source: TileRange, target: TileRange) -> Move:
    """A weight for each pair of neurons: both sides hold them in the neurons' order, so what joins two tiles is one piece."""
    traffic, stays = Traffic.none(layout.problem), 0
    for r in range(source.replicas):
        tiles, origin = source.of(r), target.of(r * target.replicas // source.replicas)
        ends, theirs = np.cumsum(source.neurons), np.cumsum(target.neurons)
        for index, (tile, last) in enumerate(zip(tiles.tolist(), ends.tolist(), strict=True)):
            first = last - int(source.neurons[index])
            near = range(int(np.searchsorted(theirs, first, side="right")), int(np.searchsorted(theirs, last, side="left")) + 1)
            for other in near:
                common = min(last, int(theirs[other])) - max(first, int(theirs[other] - target.neurons[other]))
                if int(origin[other]) == tile:
                    stays = max(stays, FLOAT * common)
                else:
                    traffic.add(tile, FLOAT * common, 1)
                    traffic.sent[origin[other]] += FLOAT * common
                    traffic.flows.send(layout.chip_of(int(origin[other])), (layout.chip_of(tile),), FLOAT * common)
    return Move(traffic, local_copy_cycles(stays))
