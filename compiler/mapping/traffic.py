"""Bytes and fragments that the exchange before each superstep brings to every tile.

A fragment is a piece that is contiguous where it is sent and where it is received. Assumed layouts: masks and deltas are stored
by column group (``[groups][batch][...]``), so a reader takes one fragment from each column group; a window is two fragments
(ids, counts) from each relay, one for values; copied weights are one fragment from each column group. A tile reads the samples of its
replica only. Records and their adjoints
are stored by column group and sample (``[groups][batch][T][...]``), so a sample's loss takes one fragment from each column group.
Data that lies on the reading tile is not moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from snnc.compiler.mapping.buses import Bus
from snnc.compiler.mapping.cut import Cut
from snnc.compiler.mapping.grouping import Floats, Ints, column_groups, mask_words, sample_groups
from snnc.compiler.mapping.network import Layer, Source, learned_rows, learned_scalars
from snnc.compiler.mapping.placement import Placement
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.tile_range import TileRange
from snnc.compiler.plan import Relay

FLOAT = 4
RATES = 2 * FLOAT
"""What every update reads: the step size and a correction."""


@dataclass(eq=False)
class Traffic:
    """What one exchange moves: arrays over tiles; `link` is what the busiest chip receives from other chips, bytes."""

    received: Floats
    fragments: Floats
    sent: Floats
    link: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def none(cls, problem: Problem) -> Traffic:
        """No traffic."""
        tiles = problem.target.tiles
        return cls(np.zeros(tiles), np.zeros(tiles), np.zeros(tiles), np.zeros(problem.target.chips))

    def add(self, tiles: Ints | int, received: Any, fragments: Any) -> None:
        """Tiles receive bytes in fragments."""
        self.received[tiles] += received
        self.fragments[tiles] += fragments


@dataclass(frozen=True, eq=False)
class Layout:
    """Where everything lies: the problem, the tile ranges, relays and the tile of each sample's loss."""

    problem: Problem
    placement: Placement
    relays: Mapping[Source, tuple[Relay, ...]]
    loss_tiles: tuple[int, ...]

    @cached_property
    def ranges(self) -> Mapping[str, TileRange]:
        """Tile ranges by population id."""
        return {layer.id: where for layer, where in zip(self.problem.network.layers, self.placement.ranges, strict=True)}

    def cut_of(self, layer: Layer) -> Cut:
        """How `layer` is cut."""
        where = self.ranges[layer.id]
        return Cut(where.replicas, where.columns)

    def range_of(self, layer: Layer) -> TileRange:
        """Tile range of `layer`."""
        return self.ranges[layer.id]

    def range_by_id(self, name: str) -> TileRange:
        """Tile range of the population `name`."""
        return self.ranges[name]

    def chips_of(self, tiles: Ints) -> range:
        """Chips of a run of tiles."""
        per_chip = self.problem.target.tiles_per_chip
        return range(int(tiles[0]) // per_chip, int(tiles[-1]) // per_chip + 1)


def common(a: tuple[int, int], b: tuple[int, int]) -> int:
    """Samples that two (first, count) have in common."""
    return max(0, min(a[0] + a[1], b[0] + b[1]) - max(a[0], b[0]))


def with_clock(layout: Layout, traffic: Traffic) -> Traffic:
    """Every vertex of an iteration reads the iteration's number, which lies on tile 0."""
    used = np.zeros(layout.problem.target.tiles, dtype=bool)
    for where in layout.placement.ranges:
        used[where.tiles] = True
    for relays in layout.relays.values():
        used[[relay.tile for relay in relays]] = True
    used[0] = False
    send_to_all(layout, traffic, 0, np.flatnonzero(used), FLOAT)
    return traffic


def send_to_all(layout: Layout, traffic: Traffic, home: int, tiles: Ints, size: int) -> None:
    """Each of `tiles` receives the same `size` bytes from the tile `home`."""
    traffic.add(tiles, size, 1)
    traffic.sent[home] += size * (len(tiles) > 0)
    per_chip = layout.problem.target.tiles_per_chip
    for chip in set((tiles // per_chip).tolist()) - {home // per_chip}:
        traffic.link[chip] += size


def masks_to_relays(layout: Layout) -> Traffic:
    """Before F1: spike masks (values) of populations go to the relays of their samples."""
    traffic = Traffic.none(layout.problem)
    for layer in layout.problem.network.layers:
        where = layout.range_of(layer)
        for source in layer.sent:
            rows = mask_words(where.neurons, where.columns) if source.kind == "spikes" else where.neurons
            for relay in layout.relays[source]:
                _gather(layout, traffic, where, relay.tile, (relay.sample, relay.samples), rows)
            traffic.sent[where.tiles] += FLOAT * where.tile_samples * np.tile(rows, where.replicas)
    return traffic


def _gather(layout: Layout, traffic: Traffic, where: TileRange, tile: int, samples: tuple[int, int], rows: Ints) -> None:
    """`tile` receives some samples of the rows ``[samples of a replica]`` that each tile of a replica holds.

    Rows of one tile follow each other: all their samples are one piece, fewer are one piece a row.
    """
    for replica in where.replicas_with(*samples):
        overlap = common(where.samples[replica], samples)
        pieces = np.minimum(rows, 1) if overlap == where.samples[replica][1] else rows
        own = where.index_of(replica, tile)
        moved = FLOAT * overlap * (int(rows.sum()) - (int(rows[own]) if own is not None else 0))
        traffic.add(tile, moved, int(pieces.sum()) - (int(pieces[own]) if own is not None else 0))
        _over_links(layout, traffic, where.of(replica), tile, moved)


def windows_to_blocks(layout: Layout, *, backward: bool = False) -> Traffic:
    """Before F2 and B2: windows go to every tile that reads them (backward: where weight gradients are formed)."""
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    for bus in problem.buses:
        readers = [
            layer
            for layer in problem.network.layers
            if any(problem.bus_of[link.id] == bus.id and (link.weight_gradient or not backward) for link in layer.incoming)
        ]
        if readers:
            _multicast(layout, traffic, bus, [layout.range_of(layer) for layer in readers])
    return traffic


def _multicast(layout: Layout, traffic: Traffic, bus: Bus, ranges: list[TileRange]) -> None:
    """Each tile reads its own samples of a bus once, however many of its populations do."""
    problem, relays = layout.problem, layout.relays[bus.source]
    first = np.array([r.sample for r in relays])
    last = first + np.array([r.samples for r in relays])
    pieces = 2 if bus.events else 1
    samples, number = np.zeros(problem.target.tiles), np.zeros(problem.target.tiles)
    for where in ranges:
        for replica, (sample, count) in enumerate(where.samples):
            tiles = where.of(replica)
            overlapping = np.searchsorted(first, sample + count, side="left") - np.searchsorted(last, sample, side="right")
            samples[tiles], number[tiles] = np.maximum(samples[tiles], count), np.maximum(number[tiles], overlapping)
    for relay in relays:
        replicas = ((where, where.replica_of(relay.tile)) for where in ranges)
        held = max((common(where.samples[r], (relay.sample, relay.samples)) for where, r in replicas if r is not None), default=0)
        samples[relay.tile] -= held
        number[relay.tile] -= held > 0
        traffic.sent[relay.tile] += relay.samples * bus.window_bytes
    traffic.received += float(bus.window_bytes) * samples
    traffic.fragments += float(pieces) * number
    if layout.placement.chips > 1:
        _multicast_over_links(layout, traffic, bus, ranges)


def _multicast_over_links(layout: Layout, traffic: Traffic, bus: Bus, ranges: list[TileRange]) -> None:
    """A chip receives once what any of its tiles reads of a relay on another chip."""
    problem = layout.problem
    read = np.zeros((problem.target.chips, problem.batch), dtype=bool)
    for where in ranges:
        for replica, (sample, count) in enumerate(where.samples):
            chips = layout.chips_of(where.of(replica))
            read[chips.start : chips.stop, sample : sample + count] = True
    for relay in layout.relays[bus.source]:
        wanted = read[:, relay.sample : relay.sample + relay.samples].sum(axis=1)
        wanted[relay.tile // problem.target.tiles_per_chip] = 0
        traffic.link += float(bus.window_bytes) * wanted


def deltas_to_sources(layout: Layout) -> Traffic:
    """Before B1: every tile of a source reads the deltas of its targets for its samples."""
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    for layer in problem.network.layers:
        for target, _ in problem.deltas_into(layer):
            _read_all(layout, traffic, layout.range_of(layer), layout.range_by_id(target))
    return traffic


def _read_all(layout: Layout, traffic: Traffic, reader: TileRange, writer: TileRange) -> None:
    """Each tile of `reader` reads what all tiles of `writer` hold for its samples, but for what it holds itself."""
    for r, wanted in enumerate(reader.samples):
        for w in writer.replicas_with(*wanted):
            size = FLOAT * common(wanted, writer.samples[w])
            tiles, sources = reader.of(r), writer.of(w)
            pieces = np.minimum(writer.neurons, 1) if common(wanted, writer.samples[w]) == writer.samples[w][1] else writer.neurons
            traffic.add(tiles, size * int(writer.neurons.sum()), int(pieces.sum()))
            both, _, own = shared_tiles(tiles, sources)
            traffic.add(both, -size * writer.neurons[own], -pieces[own])
            if layout.placement.chips == 1:
                continue
            home = set(layout.chips_of(sources))
            for chip in layout.chips_of(tiles):
                if home != {chip}:
                    traffic.link[chip] += size * int(writer.neurons.sum()) * (1 if chip not in home else 1 - 1 / len(home))
    traffic.sent[writer.tiles] += FLOAT * writer.tile_samples * writer.tile_neurons


def shared_tiles(a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """Tiles that both hold, and where they stand in each."""
    if a[-1] < b[0] or b[-1] < a[0]:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    both, first, second = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return both, first, second


def _over_links(layout: Layout, traffic: Traffic, writers: Ints, tile: int, size: float) -> None:
    if layout.placement.chips == 1:
        return
    chip = tile // layout.problem.target.tiles_per_chip
    home = layout.chips_of(writers)
    away = sum(c != chip for c in home) / len(home)
    traffic.link[chip] += size * away


def records_to_loss(layout: Layout) -> Traffic:
    """Before L1: the records of each sample go to the tile of its loss, one piece for each block that holds it."""
    return _samples_of_blocks(layout, to_loss=True)


def adjoints_to_blocks(layout: Layout) -> Traffic:
    """Behind L1: the adjoints of the records return to the blocks."""
    return _samples_of_blocks(layout, to_loss=False)


def _samples_of_blocks(layout: Layout, *, to_loss: bool) -> Traffic:
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    if problem.network.loss_layer is None:
        return traffic
    where = layout.range_by_id(problem.network.loss_layer)
    size, groups = problem.steps * FLOAT * where.neurons, column_groups(where.neurons, where.columns)
    for replica, (first, count) in enumerate(where.samples):
        shares = sample_groups(where.neurons, where.columns, problem.target.workers, count)
        # Blocks of one sample follow each other in memory.
        pieces = np.where(shares == count, np.minimum(groups, 1), groups)
        tiles = where.of(replica)
        for tile in layout.loss_tiles[first : first + count]:
            _sample_of_blocks(layout, traffic, tile, tiles, (size, pieces), to_loss=to_loss)
    return traffic


def _sample_of_blocks(layout: Layout, traffic: Traffic, tile: int, tiles: Ints, held: tuple[Ints, Ints], *, to_loss: bool) -> None:
    """The record of one sample, of which `tiles` hold (bytes, pieces), goes to the tile of its loss, or its adjoint comes back."""
    size, pieces = held
    away = tiles != tile
    moved = int(size[away].sum())
    if to_loss:
        traffic.add(tile, moved, int(pieces[away].sum()))
        traffic.sent[tiles] += size * away
        _over_links(layout, traffic, tiles, tile, moved)
    else:
        traffic.add(tiles, size * away, pieces * away)
        traffic.sent[tile] += moved
        _over_links(layout, traffic, np.array([tile]), int(tiles[0]), moved)


def losses_to_one_tile(layout: Layout) -> Traffic:
    """Before L2: the losses of all samples go to tile 0."""
    traffic = Traffic.none(layout.problem)
    tiles = np.array(layout.loss_tiles)
    away = int((tiles != 0).sum())
    traffic.add(0, FLOAT * away, away)
    traffic.sent[tiles[tiles != 0]] += FLOAT
    for tile in tiles.tolist():
        _over_links(layout, traffic, np.array([tile]), 0, FLOAT)
    return traffic


def gradients_to_shares(layout: Layout) -> Traffic:
    """Before U1: each replica gathers its share of the gradients from all others; every tile reads the learning rate."""
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    updates = np.zeros(problem.target.tiles, dtype=bool)
    for layer in problem.network.layers:
        if learned_rows(layer):
            updates[layout.range_of(layer).tiles] = True
    updates[0] = False
    send_to_all(layout, traffic, 0, np.flatnonzero(updates), RATES)
    for layer in problem.network.layers:
        where = layout.range_of(layer)
        for each in learned_rows(layer):
            between_replicas(layout, traffic, where, each, gathers=True)
        if learned_scalars(layer):
            groups = np.tile(column_groups(where.neurons, where.columns), where.replicas)
            shares = sample_groups(where.tile_neurons, where.columns, problem.target.workers, where.tile_samples)
            away = where.tiles != where.tiles[0]
            moved = learned_scalars(layer) * FLOAT * int((groups * shares)[away].sum())
            traffic.add(int(where.tiles[0]), moved, learned_scalars(layer) * int(away.sum()))
    return traffic


def between_replicas(layout: Layout, traffic: Traffic, where: TileRange, rows: int, *, gathers: bool) -> None:
    """Shares of one parameter travel between the replicas of a population: each gathers its own, or sends it to all others."""
    if where.replicas == 1:
        return
    others = where.replicas - 1
    share = FLOAT * rows * where.tile_neurons / where.replicas
    traffic.add(where.tiles, others * share, others * np.tile(column_groups(where.neurons, where.columns), where.replicas))
    traffic.sent[where.tiles] += others * share if gathers else share
    homes = [set(layout.chips_of(where.of(r))) for r in range(where.replicas)] if layout.placement.chips > 1 else []
    for r, home in enumerate(homes):
        away = sum(other != home for other in homes)
        traffic.link[min(home)] += away * float(share[r * where.width : (r + 1) * where.width].sum())


def flags_to_one_tile(layout: Layout) -> Traffic:
    """Before the test for overflow: a flag from every relay of a limited bus."""
    traffic = Traffic.none(layout.problem)
    flags = sum(relay.tile != 0 for bus in layout.problem.limited for relay in layout.relays[bus.source])
    traffic.add(0, FLOAT * flags, flags)
    return traffic
