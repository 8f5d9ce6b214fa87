"""Exchange of indexed connections: deltas read row by row, gradients sent to owners, and weights sent back from owners.

An indexed connection is stored as tables, not as a dense matrix. A delta is the adjoint of a current of a target neuron, which tiles of the
source read. B1 (source gradients) and U1 (update) are supersteps of docs/decisions/0001-poplar-program.md. A :class:`Link` is a connection;
the links of ``..._over_links`` connect chips. Without `layout.exact`, the sizes of tables are estimated, because placements are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.blocks.grouping import Bools, Floats, Ints, column_groups, places_within
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.exchange.indexed_owners import Ownership
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout, common, send_over_links
from snnc.compiler.tiles.indexed.owners import owner_count
from snnc.compiler.tiles.indexed.tables import Pieces
from snnc.compiler.tiles.mapped.network import Layer, Link


def deltas_by_rows(layout: Layout, traffic: ExchangeTraffic) -> None:
    """Add, before B1, the deltas that tiles of sources read from targets.

    A row contains the deltas of one target neuron. A tile receives a row once for all its vertices: connections to the same port of
    a target share rows, and rows that a dense connection reads anyway, as float32, cost nothing.
    """
    problem = layout.problem
    for layer in problem.network.layers:
        read_anyway = {(target, port) for target, port in problem.whole_deltas_into(layer) if problem.delta_bytes(target, port) == FLOAT}
        rows: dict[tuple[str, int], list[Link]] = {}
        for link in layer.outgoing:
            if link.indexed is not None and link.input_gradient:
                rows.setdefault((link.target, link.port), []).append(link)
        for target, links in rows.items():
            reader = layout.ranges[layer.id]
            for link in links if not layout.exact else ():
                assert link.indexed is not None
                # For a maximum, the source also reads which entries were chosen.
                times = (target not in read_anyway) + link.chooses
                amounts = layout.holdings(layer)(link.indexed, "source").total
                traffic.add(reader.tiles, times * FLOAT * reader.tile_samples * amounts["read"], times * amounts["pieces"])
            if not layout.exact:
                continue
            for read_together in ([links] if target not in read_anyway else []) + [[link] for link in links if link.chooses]:
                _read_rows(layout, traffic, read_together, reader)


def _read_rows(layout: Layout, traffic: ExchangeTraffic, links: Sequence[Link], reader: TileRange) -> None:
    """Add the rows that tiles of `reader` read from the target of `links`; a tile reads each row once."""
    writer = layout.ranges[links[0].target]
    tile, row = _tile_rows(links, reader)
    home = np.searchsorted(np.cumsum(writer.neurons), row, side="right")
    begins = np.ones(len(row), bool)  # consecutive rows of one tile are sent in one piece
    begins[1:] = (np.diff(row) != 1) | (np.diff(tile) != 0) | (np.diff(home) != 0)
    rows, pieces = (np.bincount(tile[some], minlength=reader.width) for some in (slice(None), begins))
    for r, read in enumerate(reader.samples):
        for w, written in enumerate(writer.samples):
            overlap = common(read, written)
            if not overlap:
                continue
            complete = overlap == written[1]
            size = float(FLOAT * overlap)
            traffic.add(reader.of(r), size * rows, pieces if complete else rows)
            local = home - tile == reader.starts[r] - writer.starts[w]
            if local.any():
                local_rows = [np.bincount(tile[local & some], minlength=reader.width) for some in (True, begins if complete else True)]
                traffic.add(reader.of(r), -size * local_rows[0], -local_rows[1])
            _rows_over_links(layout, traffic, reader.starts[r] + tile, writer.starts[w] + home, row, size)
    traffic.sent[writer.tiles] += FLOAT * writer.tile_samples * writer.tile_neurons


def _tile_rows(links: Sequence[Link], reader: TileRange) -> tuple[Ints, Ints]:
    """Return every distinct pair of a tile (as an index in a replica) and a row that it reads."""
    tile_of_group = np.repeat(np.arange(reader.width), column_groups(reader.neurons, reader.columns))
    outputs, keys_of_links = links[0].outputs, []
    for link in links:
        assert link.indexed is not None
        owner, row = _spread(link.indexed.on_tiles.tables("source", reader).targets)
        keys_of_links.append(tile_of_group[owner] * outputs + row)
    keys = np.sort(np.concatenate(keys_of_links))
    tile, row = np.divmod(keys[np.append(True, np.diff(keys) != 0)[: len(keys)]], outputs)
    return tile, row


def _spread(pieces: Pieces) -> tuple[Ints, Ints]:
    group = np.repeat(np.arange(len(pieces.group) - 1), np.diff(pieces.group))
    return np.repeat(group, pieces.count), places_within(pieces.count) + np.repeat(pieces.first, pieces.count)


def _rows_over_links(layout: Layout, traffic: ExchangeTraffic, to: Ints, origin: Ints, row: Ints, size: float) -> None:
    """Add the rows that cross chips; a chip sends a row of `size` bytes once to each chip that reads it."""
    if not layout.several_chips:
        return
    per_chip, chips = layout.problem.target.tiles_per_chip, layout.problem.target.chips
    away = to // per_chip != origin // per_chip
    pairs = np.unique((row[away] * chips + origin[away] // per_chip) * chips + to[away] // per_chip) % (chips * chips)
    for pair, number in zip(*(array.tolist() for array in np.unique(pairs, return_counts=True)), strict=True):
        traffic.flows.send(pair // chips, (pair % chips,), size * number)


def owned_by(layout: Layout, layers: Sequence[Layer]) -> list[Ownership]:
    """Return the learned indexed connections whose weights the tiles of `layers` own."""
    ids = {layer.id for layer in layers}
    return [connection for connection in layout.owned if connection.link.target in ids]


def gradients_to_owners(layout: Layout, layers: Sequence[Layer]) -> ExchangeTraffic:
    """Return the exchange before U1: owners gather their weights' gradients from the column groups of `layers` that use the weights."""
    traffic = ExchangeTraffic.none(layout.problem)
    for weights in owned_by(layout, layers) if not layout.exact else ():
        tiles, _, pieces, values = _estimated_work(layout, weights)
        traffic.add(tiles, FLOAT * values, pieces)
    for weights in owned_by(layout, layers) if layout.exact else ():
        where = weights.target
        blocks = layout.problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples)
        single = (blocks <= 1).reshape(where.replicas, where.width)
        for replica, (tile, owner, elements) in enumerate(weights.uses("target")):
            moved = (tile != weights.owners.tile[owner]) & weights.owners.learned[owner]
            joined = weights.joined("target", (tile, owner, elements), single[replica]) & np.append(False, moved[:-1])
            to, size = weights.owners.tile[owner][moved], FLOAT * elements[moved]
            _move(layout, traffic, tile[moved], to, size, joined[moved])
            traffic.sent += np.bincount(tile[moved], size, len(traffic.sent))
    return traffic


def weights_from_owners(layout: Layout, size: int, traffic: ExchangeTraffic, stays: Floats) -> bool:
    """Add, after U1, the elements of `size` bytes that column groups of targets and sources copy from owners; return whether any exist.

    Bytes that a tile copies within its own memory are added to `stays`.
    """
    copied = [weights for weights in layout.copied if (weights.sizes == size).any()] if layout.exact else []
    for weights in copied:
        for side in weights.sides:
            for tile, owner, elements in weights.uses(side):
                of_size, away = weights.sizes[owner] == size, tile != weights.owners.tile[owner]
                moved, stay = of_size & away, of_size & ~away
                joined = weights.joined(side, (tile, owner, elements))[moved]
                _move(layout, traffic, weights.owners.tile[owner][moved], tile[moved], size * elements[moved], joined)
                stays += np.bincount(tile[stay], size * elements[stay], len(stays))
        np.add.at(traffic.sent, weights.owners.tile, size * weights.owners.count * (weights.sizes == size) * len(weights.sides))
    return bool(copied)


def _move(layout: Layout, traffic: ExchangeTraffic, origin: Ints, to: Ints, size: Ints, joined: Bools) -> None:
    """Add the pieces that tiles `origin` send to tiles `to`; a `joined` piece belongs to the fragment of the previous piece."""
    traffic.received += np.bincount(to, size, len(traffic.received))
    traffic.fragments += np.bincount(to[~joined], minlength=len(traffic.received))
    send_over_links(layout, traffic, origin, to, size)


class OwnedWork(NamedTuple):
    """Work of owners that update weights; arrays have one value for each owner."""

    tiles: Ints
    elements: Ints
    """Tile of the owner, and number of elements that it owns."""
    pieces: Ints
    values: Ints
    """Number of pieces of gradients that the owner sums, and total number of their elements."""
    half: bool = False
    """Whether the elements are float16."""
    places: bool = False
    """Whether a table contains the position of each element in the model's array, for stochastic rounding."""


def owned_work(layout: Layout, layers: Sequence[Layer]) -> Iterator[OwnedWork]:
    """Yield the work of the owners of each learned indexed connection to `layers`, separately for float16 and float32 elements.

    If tables are only estimated, all owners are assumed to sum the same number of pieces, and biases count as weights.
    """
    random = layout.problem.network.rounding == "stochastic"
    if not layout.exact:
        for weights in owned_by(layout, layers):
            tiles, *numbers = _estimated_work(layout, weights)
            count, pieces, values = (np.full(len(tiles), number, np.int64) for number in numbers)
            yield OwnedWork(tiles, count, pieces, values, weights.link.half, weights.link.half and random and weights.indexed.map.reordered)
    for weights in owned_by(layout, layers) if layout.exact else ():
        number = len(weights.owners.tile)
        pieces, values = np.zeros(number, np.int64), np.zeros(number, np.int64)
        for _, owner, elements in weights.uses("target"):
            pieces += np.bincount(owner, minlength=number)
            values += np.bincount(owner, elements, number).astype(np.int64)
        for half in (True, False):
            owned = weights.owners.learned & (weights.halves == half)
            if owned.any():
                tiles, count = weights.owners.tile[owned], weights.owners.count[owned]
                yield OwnedWork(tiles, count, pieces[owned], values[owned], half, half and random and weights.indexed.map.reordered)


def _estimated_work(layout: Layout, weights: Ownership) -> tuple[Ints, int, int, int]:
    """Return the tiles of owners, and estimates of `elements`, `pieces` and `values` of :class:`OwnedWork` for one owner."""
    where, elements = weights.target, weights.indexed.owned
    owners = owner_count(elements, len(where.tiles))
    groups = int(column_groups(where.tile_neurons, where.columns).sum())
    values = float(np.sum(layout.holdings(layout.problem.by_id[weights.link.target])(weights.indexed, "target").total["size"]))
    touched = min(values / groups * owners / elements + 1, owners)
    tiles = np.sort(where.tiles)[np.arange(owners) * len(where.tiles) // owners]
    return tiles, -(-elements // owners), round(groups * touched / owners), round(values / owners)
