"""What indexed connections exchange: deltas that tiles read row by row, gradients on their way to owners, weights on their way back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from snnc.compiler.indexed.owners import Owners, find_owners
from snnc.compiler.indexed.tables import Pieces
from snnc.compiler.mapping.grouping import Ints, column_groups
from snnc.compiler.mapping.indexed_links import IndexedLink, Side
from snnc.compiler.mapping.network import Link
from snnc.compiler.mapping.tile_range import TileRange
from snnc.compiler.mapping.traffic import Layout, Traffic, common

FLOAT: Final = 4


def deltas_by_rows(layout: Layout, traffic: Traffic) -> None:
    """Before B1: add what tiles of sources read of the deltas of the targets that they reach."""
    for layer in layout.problem.network.layers:
        for link in layer.outgoing:
            if link.indexed is None or not link.input_gradient:
                continue
            reader, writer = layout.range_of(layer), layout.range_by_id(link.target)
            if layout.exact:
                _read_rows(layout, traffic, link, link.indexed, reader, writer)
            else:
                held = layout.holdings(layer)(link.indexed, "source").total
                traffic.add(reader.tiles, FLOAT * reader.tile_samples * held["read"], held["pieces"])


def _read_rows(layout: Layout, traffic: Traffic, link: Link, indexed: IndexedLink, reader: TileRange, writer: TileRange) -> None:
    tile, row = _tile_rows(indexed, reader, link.outputs)
    times = 2 if link.chooses else 1  # deltas, and for a maximum which entry was chosen
    home = np.searchsorted(np.cumsum(writer.neurons), row, side="right")
    for r, wanted in enumerate(reader.samples):
        for w, held in enumerate(writer.samples):
            overlap = common(wanted, held)
            if not overlap:
                continue
            to, origin = reader.starts[r] + tile, writer.starts[w] + home
            moved = to != origin
            apart = np.ones(len(row), bool)
            if overlap == held[1]:  # rows that follow one another on a tile travel as one piece
                apart[1:] = (np.diff(row) != 1) | (np.diff(tile) != 0) | (np.diff(home) != 0)
            np.add.at(traffic.received, to[moved], float(times * FLOAT * overlap))
            np.add.at(traffic.fragments, to[moved & apart], float(times))
            _over_links(layout, traffic, to, origin, row, times * FLOAT * overlap)
    traffic.sent[writer.tiles] += times * FLOAT * writer.tile_samples * writer.tile_neurons


def _tile_rows(indexed: IndexedLink, reader: TileRange, outputs: int) -> tuple[Ints, Ints]:
    """Tile (counted in a replica) and target of every row that some tile reads, each once."""
    targets = indexed.tables("source", reader).targets
    tile_of_group = np.repeat(np.arange(reader.width), column_groups(reader.neurons, reader.columns))
    owner, row = _spread(targets)
    tile, found = np.divmod(np.unique(tile_of_group[owner] * outputs + row), outputs)
    return tile, found


def _spread(pieces: Pieces) -> tuple[Ints, Ints]:
    """Group and element of everything that pieces hold."""
    group = np.repeat(np.arange(len(pieces.group) - 1), np.diff(pieces.group))
    total = np.cumsum(pieces.count) - pieces.count
    element = np.arange(int(pieces.count.sum())) - np.repeat(total, pieces.count) + np.repeat(pieces.first, pieces.count)
    return np.repeat(group, pieces.count), element


def _over_links(layout: Layout, traffic: Traffic, to: Ints, origin: Ints, row: Ints, size: float) -> None:
    """Each row crosses to each other chip once."""
    per_chip, chips = layout.problem.target.tiles_per_chip, layout.problem.target.chips
    away = to // per_chip != origin // per_chip
    if away.any():
        crossing = np.unique(row[away] * chips + to[away] // per_chip) % chips
        traffic.link += size * np.bincount(crossing, minlength=chips)


@dataclass(frozen=True, eq=False)
class Ownership:
    """An indexed connection with weights: who owns what, and which groups use it."""

    layout: Layout
    link: Link
    indexed: IndexedLink

    @property
    def target(self) -> TileRange:
        """Where its target lies."""
        return self.layout.range_by_id(self.link.target)

    @cached_property
    def owners(self) -> Owners:
        """The owners of its weights."""
        where, tables = self.target, self.indexed.tables("target", self.target)
        return find_owners(
            self.indexed.map, tables.used, where.starts[0] + group_tiles(where), np.sort(where.tiles),
            weight_learns=self.indexed.weight_learns, bias_learns=self.indexed.bias_learns,
        )  # fmt: skip

    def uses(self, side: Side) -> Iterator[tuple[Ints, Ints, Ints]]:
        """For each replica: tile, owner and elements of everything that a group has from one owner in one piece."""
        where = self.target if side == "target" else self.layout.range_by_id(self.link.source.owner)
        used = self.indexed.tables(side, where).used
        group = np.repeat(np.arange(len(used.group) - 1), np.diff(used.group))
        begin = np.searchsorted(self.owners.first, used.first, side="right") - 1
        end = np.searchsorted(self.owners.first, used.first + used.count, side="left")
        piece = np.repeat(np.arange(len(begin)), end - begin)
        owner = np.arange(len(piece)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin) + begin[piece]
        first, last = self.owners.first[owner], (self.owners.first + self.owners.count)[owner]
        elements = np.minimum((used.first + used.count)[piece], last) - np.maximum(used.first[piece], first)
        tiles = group_tiles(where)[group[piece]]
        for start in where.starts:
            yield start + tiles, owner, elements


def group_tiles(where: TileRange) -> Ints:
    """Tile of each group of a replica, counted in the replica."""
    found: Ints = np.repeat(np.arange(where.width), column_groups(where.neurons, where.columns))
    return found


def ownerships(layout: Layout) -> Iterator[Ownership]:
    """Indexed connections of whose weights training changes some."""
    for link in layout.problem.network.indexed:
        if link.indexed is not None and link.weight_gradient:
            yield Ownership(layout, link, link.indexed)


def gradients_to_owners(layout: Layout) -> Traffic:
    """Before U1: owners gather the sums of the groups that use their weights."""
    traffic = Traffic.none(layout.problem)
    for found in ownerships(layout) if layout.exact else ():
        for tile, owner, elements in found.uses("target"):
            moved = (tile != found.owners.tile[owner]) & found.owners.learned[owner]
            to, size = found.owners.tile[owner][moved], FLOAT * elements[moved]
            _move(layout, traffic, tile[moved], to, size)
            np.add.at(traffic.sent, tile[moved], size)
    return traffic


def weights_from_owners(layout: Layout, traffic: Traffic) -> None:
    """Behind U1: add what groups of both sides copy from owners."""
    for found in ownerships(layout) if layout.exact else ():
        sides: tuple[Side, ...] = ("target", "source") if found.link.input_gradient else ("target",)
        for side in sides:
            for tile, owner, elements in found.uses(side):
                moved = tile != found.owners.tile[owner]
                _move(layout, traffic, found.owners.tile[owner][moved], tile[moved], FLOAT * elements[moved])
        np.add.at(traffic.sent, found.owners.tile, FLOAT * found.owners.count * len(sides))


def _move(layout: Layout, traffic: Traffic, origin: Ints, to: Ints, size: Ints) -> None:
    np.add.at(traffic.received, to, size.astype(np.float64))
    np.add.at(traffic.fragments, to, 1.0)
    per_chip = layout.problem.target.tiles_per_chip
    away = origin // per_chip != to // per_chip
    np.add.at(traffic.link, to[away] // per_chip, size[away].astype(np.float64))


def owned_work(layout: Layout) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """For each learned connection: tile of each learning owner, its elements, the pieces that it sums and their elements.

    It is small beside the steps, and left out as long as tables are only estimated.
    """
    for found in ownerships(layout) if layout.exact else ():
        pieces, values = np.zeros(len(found.owners.tile)), np.zeros(len(found.owners.tile))
        for _, owner, elements in found.uses("target"):
            np.add.at(pieces, owner, 1)
            np.add.at(values, owner, elements)
        some = found.owners.learned
        yield found.owners.tile[some], found.owners.count[some], pieces[some].astype(np.int64), values[some].astype(np.int64)
