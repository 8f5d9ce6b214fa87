"""Copies of parameters after an update: to the other replicas, to tiles that share a number, to the sources of connections."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.traffic import FLOAT, Layout, Traffic, between_replicas, send_to_all, shared_tiles
from snnc.compiler.tiles.indexed.indexed_traffic import weights_from_owners
from snnc.compiler.tiles.network import Link, learned_rows
from snnc.compiler.tiles.placement.grouping import Floats, Ints, column_groups
from snnc.compiler.tiles.placement.tile_range import TileRange
from snnc.compiler.tiles.vertices.cost import worker_cycles

LOCAL_START: Final = 288.0
"""Tile cycles of a copy inside a tile in addition to its bytes, and bytes per cycle: Poplar profiles (facts on the machine)."""
LOCAL_BYTES: Final = 8.0


@dataclass(frozen=True, eq=False)
class Move:
    """One copy: its exchange, and the bytes that stay on each tile."""

    traffic: Traffic
    stays: Floats

    @classmethod
    def none(cls, layout: Layout) -> Move:
        """Nothing is copied."""
        return cls(Traffic.none(layout.problem), np.zeros(layout.problem.target.tiles))

    @property
    def local(self) -> float:
        """Tile cycles of the data that stays on its tile."""
        return local_copy_cycles(float(self.stays.max()))


def local_copy_cycles(size: float) -> float:
    """Tile cycles of a copy of `size` bytes inside a tile; 0 for none."""
    return LOCAL_START + math.ceil(size / LOCAL_BYTES) if size > 0 else 0.0


def weights_to_replicas(layout: Layout) -> Traffic | None:
    """Copy updated shares of learned parameters to all other replicas, in one copy; None if there are none."""
    replicated = [(layer, where) for layer in layout.problem.network.layers if (where := layout.range_of(layer)).replicas > 1]
    if not any(learned_rows(layer) for layer, _ in replicated):
        return None
    traffic = Traffic.none(layout.problem)
    for layer, where in replicated:
        for rows in learned_rows(layer):
            between_replicas(layout, traffic, where, rows, gathers=False)
    return traffic


def numbers_to_readers(layout: Layout) -> Move | None:
    """Copy shared values, and weights with one value per neuron, to their readers, in one copy; None if there are none."""
    problem, move = layout.problem, Move.none(layout)
    found = layout.exact and bool(layout.copied)
    weights_from_owners(layout, move.traffic, move.stays)
    for layer in problem.network.layers:
        where = layout.range_of(layer)
        shared = layer.scalar_parameters + sum(
            link.one_to_one and link.weight_elements == 1 and layer.neurons > 1 for link in layer.incoming
        )
        for _ in range(shared):
            found = True
            _shared(layout, move, int(where.tiles[0]), where)
    for link in problem.network.links if problem.training else ():
        if problem.copies(link) and link.weight_elements and link.one_to_one:
            found = True
            source, target = layout.range_by_id(link.source.owner), layout.range_by_id(link.target)
            if link.weight_elements == 1:
                _shared(layout, move, int(target.tiles[0]), source)
            else:
                _pairs(layout, move, source, target)
    return move if found else None


def _shared(layout: Layout, move: Move, home: int, where: TileRange) -> None:
    """One number, once for each column group."""
    groups = np.tile(column_groups(where.neurons, where.columns), where.replicas)
    away = where.tiles != home
    send_to_all(layout, move.traffic, home, where.tiles[away], FLOAT)
    move.traffic.add(where.tiles, FLOAT * (groups - 1) * away, (groups - 1) * away)
    move.stays[where.tiles] += FLOAT * groups * ~away


def _pairs(layout: Layout, move: Move, source: TileRange, target: TileRange) -> None:
    """A weight for each pair of neurons: both sides hold them in the neurons' order, so the weights between two tiles are one piece."""
    ends, theirs = np.cumsum(source.neurons), np.cumsum(target.neurons)
    for r in range(source.replicas):
        tiles, origin = source.of(r), target.of(_nearest(source, target, r))
        for index, (tile, last) in enumerate(zip(tiles.tolist(), ends.tolist(), strict=True)):
            first = last - int(source.neurons[index])
            near = range(int(np.searchsorted(theirs, first, side="right")), int(np.searchsorted(theirs, last, side="left")) + 1)
            for other in near:
                common = min(last, int(theirs[other])) - max(first, int(theirs[other] - target.neurons[other]))
                if int(origin[other]) == tile:
                    move.stays[tile] += FLOAT * common
                else:
                    move.traffic.add(tile, FLOAT * common, 1)
                    move.traffic.sent[origin[other]] += FLOAT * common
                    move.traffic.flows.send(layout.chip_of(int(origin[other])), (layout.chip_of(tile),), FLOAT * common)


# ---- dense weights, by rows, with their source -----------------------------------------------------------------------


def weights_to_sources(layout: Layout) -> tuple[Traffic, Load] | None:
    """Each tile of a source that needs its gradient reads its rows of the weights and writes them in the order of the targets.

    Rows of neighbouring neurons are consecutive in a column group of the target, separately for the paired columns and for the last of an
    odd number, so a column group is one piece or two. All workers of the tile share the work.
    """
    problem = layout.problem
    links = [link for link in problem.network.links if link.dense and problem.copies(link)] if problem.training else []
    if not links:
        return None
    traffic, load = Traffic.none(problem), Load(problem)
    for link in links:
        source, target = layout.range_by_id(link.source.owner), layout.range_by_id(link.target)
        _rows(layout, traffic, link, source, target)
        sizes, which = np.unique(source.neurons, return_inverse=True)
        cycles = np.array([_cycles(layout, n, target) for n in sizes.tolist()])[which]
        load.add(source.tiles, np.tile(cycles, source.replicas), problem.target.workers)
    return traffic, load


def _cycles(layout: Layout, rows: int, target: TileRange) -> float:
    """Worker cycles of the vertex that puts `rows` rows of weights in order: its busiest worker, as the codelet splits the elements."""
    problem, worker = layout.problem, np.arange(layout.problem.target.workers)
    found, cost = np.zeros(len(worker)), problem.costs["weight_rows"]
    for tiles, columns in _runs(target):
        column = rows * tiles
        begin, end = (column * columns * (worker + k) // len(worker) for k in (0, 1))
        touched = np.where(end > begin, (end - 1) // column - begin // column + 1, 0)
        found += worker_cycles(cost, lookups=columns, rows=touched * rows, elements=end - begin) - cost.start
    return problem.target.vertex_start_cycles + cost.start + float(found.max())


def _runs(target: TileRange) -> list[tuple[int, int]]:
    """Runs of consecutive tiles of a replica with the same number of neurons, and that number."""
    edges = np.flatnonzero(np.diff(target.neurons)) + 1
    return [(len(part), int(part[0])) for part in np.split(target.neurons, edges)]


def _rows(layout: Layout, traffic: Traffic, link: Link, source: TileRange, target: TileRange) -> None:
    """Target data that a tile of the source already holds is not moved."""
    pieces, whole = _pieces(target), _whole_pieces(target, link.inputs)
    readers = Counter(_nearest(source, target, r) for r in range(source.replicas))
    for replica in readers:
        traffic.sent[target.of(replica)] += FLOAT * link.inputs * target.neurons
    for r in range(source.replicas):
        tiles, origin = source.of(r), target.of(_nearest(source, target, r))
        each = whole if source.width == 1 else pieces
        traffic.add(tiles, FLOAT * source.neurons * int(target.neurons.sum()), int(each.sum()))
        both, mine, own = shared_tiles(tiles, origin)
        held = FLOAT * source.neurons[mine] * target.neurons[own]
        traffic.add(both, -held, -each[own])
        if readers[_nearest(source, target, r)] == 1:
            traffic.sent[both] -= held
        for chip, neurons in layout.by_chip(tiles, source.neurons).items() if layout.several_chips else ():
            for home, part in layout.by_chip(origin, target.neurons).items():
                traffic.flows.send(home, (chip,), FLOAT * neurons * part)


def _nearest(source: TileRange, target: TileRange, replica: int) -> int:
    """The target's replica whose weights a replica of the source copies."""
    return replica * target.replicas // source.replicas


def _groups(target: TileRange) -> tuple[Ints, Ints, Ints]:
    """For each tile of a replica: columns of the smaller groups, the number of groups with one more, and the number without."""
    groups = np.maximum(column_groups(target.neurons, target.columns), 1)
    larger = target.neurons % groups
    return target.neurons // groups, larger, groups - larger


def _pieces(target: TileRange) -> Ints:
    """Pieces of some rows on each tile of a replica: one for each column group, two if an odd number of columns holds a pair."""
    size, larger, smaller = _groups(target)

    def split(columns: Ints) -> Ints:
        found: Ints = np.where((columns % 2 == 1) & (columns > 1), 2, 1).astype(np.int64)
        return found

    return np.asarray((larger * split(size + 1) + smaller * split(size)) * np.minimum(target.neurons, 1), dtype=np.int64)


def _whole_pieces(target: TileRange, inputs: int) -> Ints:
    """Pieces if all rows are read: they end only where a group's elements are padded to an even number."""
    size, larger, smaller = _groups(target)
    padded = larger * (inputs * (size + 1) % 2) + smaller * (inputs * size % 2)
    last_padded = np.where(smaller > 0, inputs * size % 2, inputs * (size + 1) % 2)
    return np.asarray(1 + padded - last_padded, dtype=np.int64)
