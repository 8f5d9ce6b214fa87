"""Packing of weight rows into one piece per receiver before they are sent, so that source tiles read few pieces.

The tiles of a target are cut into bundles. Each tile of a bundle collects the rows for a part of the source's tiles from all tiles of its
bundle, and stores the rows for one source tile contiguously, as one piece. A source tile then reads one piece from each bundle instead of
one or two from each column group. If the number of tiles in a bundle is the square root of their total number, tiles of the source and of
the target read about the same number of pieces. docs/decisions/0025-packed-weight-rows.md gives the reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.blocks.grouping import Ints, ceil_div, column_groups, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout, send_over_links
from snnc.compiler.tiles.mapped.network import Link
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.vertices.parameter_vertices import pack_rows

WORTH: Final = 2
"""Rows of a connection are packed if that reduces the number of pieces that a source tile reads by this factor or more."""
NOTABLE: Final = 0.05
"""Packing is tried only if the estimated exchange code for rows of weights takes more than this fraction of a tile's memory."""
Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Runs of consecutive tiles with the same number of neurons. Each run is (number of tiles, number of neurons on each of them)."""


@dataclass(frozen=True, eq=False)
class Packing:
    """Packed rows of the weights of one connection. Unless stated otherwise, arrays have one element for each tile of a target replica."""

    inputs: int
    """Number of rows of the weights, which is the number of neurons of the source."""
    source: TileRange
    target: TileRange
    """Tile ranges of the two populations."""
    bundles: int
    """Number of runs of tiles into which :func:`snnc.compiler.tiles.blocks.grouping.split` cuts a replica of the target."""

    @cached_property
    def readers(self) -> Mapping[int, int]:
        """Replicas of the target whose rows are packed, and the number of source replicas that read each."""
        return Counter(nearest(self.source, self.target, r) for r in range(self.source.replicas))

    @cached_property
    def tiles(self) -> Ints:
        """Tiles that pack rows, of all replicas in :attr:`readers`, replica after replica."""
        return np.concatenate([self.target.of(replica) for replica in self.readers])

    @cached_property
    def edges(self) -> Ints:
        """Index of the first tile of each bundle; the last element is the number of tiles."""
        return _edges(self.target.width, self.bundles)

    @cached_property
    def bundle_of(self) -> Ints:
        """Index of the bundle of each tile."""
        return np.repeat(np.arange(self.bundles), np.diff(self.edges))

    @cached_property
    def columns(self) -> Ints:
        """Number of neurons of each bundle."""
        return np.add.reduceat(self.target.neurons, self.edges[:-1])

    def source_edges(self, size: int) -> Ints:
        """Return, for each tile of a bundle of `size` tiles, the first source tile whose rows it packs; then the number of source tiles."""
        return _edges(self.source.width, size)

    @cached_property
    def source_ranges(self) -> tuple[Ints, Ints]:
        """For each tile, the range [first, end) of source tiles whose rows it packs."""
        ranges = [ends for size in np.diff(self.edges).tolist() for ends in pairwise(self.source_edges(size).tolist())]
        begin, end = np.array(ranges, dtype=np.int64).T
        return begin, end

    @cached_property
    def rows(self) -> Ints:
        """Number of rows that each tile packs."""
        sums = np.append(0, np.cumsum(self.source.neurons))
        begin, end = self.source_ranges
        number: Ints = sums[end] - sums[begin]
        return number

    @cached_property
    def elements(self) -> Ints:
        """Number of weights that each tile packs."""
        return self.rows * self.columns[self.bundle_of]

    def widths(self, bundle: int) -> tuple[int, ...]:
        """Return the number of columns of each piece of a bundle; in a column group with an odd number, the last one is its own piece."""
        columns_of_pieces: list[int] = []
        for neurons in self.target.neurons[self.edges[bundle] : self.edges[bundle + 1]].tolist():
            for _, count in split(neurons, int(column_groups(neurons, self.target.columns))):
                columns_of_pieces += [width for width in (count // 2 * 2, count % 2) if width]
        return tuple(columns_of_pieces)

    def runs(self, tile: int) -> Runs:
        """Return the runs of source tiles whose rows the tile with index `tile` packs."""
        begin, end = (int(edge[tile]) for edge in self.source_ranges)
        return equal_runs(self.source.neurons[begin:end])

    @cached_property
    def shapes(self) -> tuple[tuple[tuple[int, ...], Runs], ...]:
        """For each tile, the widths of the pieces that it packs and the runs of source tiles."""
        widths = [self.widths(bundle) for bundle in range(self.bundles)]
        return tuple((widths[bundle], self.runs(tile)) for tile, bundle in enumerate(self.bundle_of.tolist()))

    def shape_constants(self) -> Ints:
        """Return the number of constants that describe the shape of each tile of :attr:`tiles`."""
        constants = np.array([len(widths) + 2 * len(runs) for widths, runs in self.shapes], dtype=np.int64)
        return np.tile(constants, len(self.readers))


def equal_runs(neurons: Ints) -> Runs:
    """Return the runs of consecutive tiles with the same number of neurons."""
    return tuple((len(part), int(part[0])) for part in np.split(neurons, np.flatnonzero(np.diff(neurons)) + 1))


def _edges(total: int, parts: int) -> Ints:
    return np.array([first for first, _ in split(total, parts)] + [total], dtype=np.int64)


def saves_room(problem: MappingProblem) -> bool:
    """Return whether packing may save room: whether exchange code for rows of weights may take more than NOTABLE of a tile's memory.

    The estimate assumes that the neurons of a target are on as many tiles as possible, and that each of them sends one piece to a
    source tile. Rows of float16 weights are not packed, because their pieces would not be aligned to words.
    """
    if problem.network.half_weights:
        return False
    read = [
        sum(min(link.outputs, problem.target.tiles) for link in layer.outgoing if link.dense and problem.copies(link))
        for layer in problem.network.layers
        if problem.training
    ]
    return problem.target.fragment_code_bytes * max(read, default=0) > NOTABLE * problem.target.tile_bytes


def packings(layout: Layout) -> Iterator[tuple[Link, Packing]]:
    """Yield the connections whose rows of weights are packed, with their packing."""
    for link in layout.problem.network.links if layout.problem.packed else ():
        packing = packing_of(layout, link)
        if packing is not None:
            yield link, packing


def packing_of(layout: Layout, link: Link) -> Packing | None:
    """Return the packing of the rows of `link`; None if they are not packed."""
    problem = layout.problem
    if not (problem.packed and problem.training and link.dense and problem.copies(link)):
        return None
    source, target = layout.ranges[link.source.owner], layout.ranges[link.target]
    bundles = bundles_of(problem, source, target)
    return Packing(link.inputs, source, target, bundles) if bundles else None


def bundles_of(problem: MappingProblem, source: TileRange, target: TileRange) -> int:
    """Return the number of bundles with the fewest bytes of exchange code and packed rows on a tile; 0 if packing is not worth it."""
    pieces_per_tile, sizes = row_pieces(target).mean(), np.arange(1, min(source.width, target.width) + 1)
    bundles = np.unique(ceil_div(target.width, sizes))
    largest, smallest = ceil_div(target.width, bundles), target.width // bundles
    pieces = pieces_per_tile * (largest - 1) + bundles
    rows = ceil_div(source.width, np.minimum(smallest, source.width)) * int(source.neurons.max())
    packed = FLOAT * rows * largest * int(target.neurons.max())
    best = int(np.argmin(problem.target.fragment_code_bytes * pieces + packed))
    return int(bundles[best]) if WORTH * pieces[best] <= pieces_per_tile * target.width else 0


def nearest(source: TileRange, target: TileRange, replica: int) -> int:
    """Return the replica of the target whose weights a replica of the source copies."""
    return replica * target.replicas // source.replicas


def group_sizes(target: TileRange) -> tuple[Ints, Ints, Ints]:
    """Return, for each tile of a replica, the columns of its smaller column groups, and the numbers of larger and of smaller groups.

    A larger group has one more column.
    """
    groups = np.maximum(column_groups(target.neurons, target.columns), 1)
    larger = target.neurons % groups
    return target.neurons // groups, larger, groups - larger


def row_pieces(target: TileRange) -> Ints:
    """Return the number of pieces of a row on each tile of a replica: two for a column group with 3, 5, 7, … columns, one for any other."""
    size, larger, smaller = group_sizes(target)

    def pieces(columns: Ints) -> Ints:
        return np.where((columns % 2 == 1) & (columns > 1), 2, 1).astype(np.int64)

    return np.asarray((larger * pieces(size + 1) + smaller * pieces(size)) * np.minimum(target.neurons, 1), dtype=np.int64)


def rows_to_bundles(layout: Layout) -> tuple[Load, ExchangeTraffic] | None:
    """Return the work and the exchange of the superstep in which tiles collect rows of their bundle; None if no rows are packed."""
    packed = list(packings(layout))
    if not packed:
        return None
    traffic, load = ExchangeTraffic.none(layout.problem), Load(layout.problem)
    for _, packing in packed:
        for replica in packing.readers:
            _collect(layout, traffic, packing, replica)
        cycles = {shape: _cycles(layout.problem, *shape) for shape in dict.fromkeys(packing.shapes)}
        each = np.array([cycles[shape] for shape in packing.shapes])
        load.add(packing.tiles, np.tile(each, len(packing.readers)), layout.problem.target.workers)
    return load, traffic


def _collect(layout: Layout, traffic: ExchangeTraffic, packing: Packing, replica: int) -> None:
    tiles, neurons, pieces = packing.target.of(replica), packing.target.neurons, row_pieces(packing.target)
    of_bundle = np.add.reduceat(pieces, packing.edges[:-1])[packing.bundle_of]
    others = packing.columns[packing.bundle_of] - neurons
    traffic.add(tiles, FLOAT * packing.rows * others, of_bundle - pieces)
    traffic.sent[tiles] += FLOAT * neurons * (packing.inputs - packing.rows)
    if not layout.several_chips:
        return
    chips = tiles // layout.problem.target.tiles_per_chip
    for first, last in pairwise(packing.edges.tolist()):
        if chips[first] == chips[last - 1]:
            continue
        sent, wanted = layout.by_chip(tiles[first:last], neurons[first:last]), layout.by_chip(tiles[first:last], packing.rows[first:last])
        for home, columns in sent.items():
            for chip, rows in wanted.items():
                traffic.flows.send(home, (chip,), FLOAT * columns * rows)


def _cycles(problem: MappingProblem, widths: tuple[int, ...], runs: Runs) -> float:
    """Return the cycles of the busiest worker that packs rows; elements are distributed to workers as in the codelet."""
    workers = problem.target.workers
    width, (number, count) = np.array(widths, dtype=np.int64), np.array(runs, dtype=np.int64).T
    before = np.append(0, np.cumsum(number * count))
    edges = int(before[-1]) * int(width.sum()) * np.arange(workers + 1) // workers
    begin, end = edges[:-1, None], edges[1:, None]
    at = int(before[-1]) * np.append(0, np.cumsum(width))
    touched = (at[1:] > begin) & (at[:-1] < end)
    block = width[:, None] * count
    start = at[:-1, None] + width[:, None] * before[:-1]
    first = np.clip(begin[..., None] - start, 0, number * block) // block
    last = ceil_div(np.clip(end[..., None] - start, 0, number * block), block)
    rows = np.maximum(last - first, 0).sum(axis=(1, 2))
    amounts = {"pieces": len(widths), "runs": len(runs) * touched.sum(axis=1), "rows": rows, "weights": (end - begin)[:, 0]}
    cycles = pack_rows(problem.costs).cycles(amounts)
    return problem.target.vertex_start_cycles + float(cycles.max())


def packed_to_source(layout: Layout, traffic: ExchangeTraffic, packing: Packing) -> None:
    """Add the packed rows: each source tile reads one piece from every bundle, unless the piece is in its own memory."""
    source, width = packing.source, packing.source.width
    sizes, columns = np.diff(packing.edges), packing.columns
    member = {size: np.searchsorted(packing.source_edges(size), np.arange(width), side="right") - 1 for size in np.unique(sizes).tolist()}
    for replica, readers in packing.readers.items():
        tiles, moved = packing.target.of(replica), np.zeros(packing.target.width, dtype=bool)
        for r in (r for r in range(source.replicas) if nearest(source, packing.target, r) == replica):
            reading = source.of(r)
            for bundle, size in enumerate(sizes.tolist()):
                packed = packing.edges[bundle] + member[size]
                away = tiles[packed] != reading
                size_of_rows = FLOAT * source.neurons * columns[bundle]
                traffic.add(reading, size_of_rows * away, away)
                if readers == 1:
                    np.add.at(traffic.sent, tiles[packed], size_of_rows * away)
                moved[packed[away]] = True
                send_over_links(layout, traffic, tiles[packed], reading, size_of_rows)
        if readers > 1:
            traffic.sent[tiles] += FLOAT * packing.elements * moved
