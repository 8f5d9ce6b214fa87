"""Bytes and fragments that the exchange before each superstep brings to every tile.

A fragment is a piece that is contiguous where it is sent and where it is received. Assumed layouts: masks and deltas are stored
by column group (``[groups][batch][...]``), so a reader takes one fragment from each column group; a window is two fragments
(ids, counts) from each relay, one for values; copied weights are one fragment from each column group. Records and their adjoints
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
from snnc.compiler.mapping.gradient_counts import returned_buses
from snnc.compiler.mapping.gradient_windows import reductions
from snnc.compiler.mapping.grouping import Floats, column_groups, mask_words
from snnc.compiler.mapping.network import Layer, Source
from snnc.compiler.mapping.placement import Placement, TileRange
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.plan import GradientPlan, Relay

FLOAT = 4


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

    def add(self, tiles: slice | int, received: Any, fragments: Any) -> None:
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
    def reductions(self) -> Mapping[str, GradientPlan]:
        """How the gradients of sources come back in windows, by bus id."""
        return reductions(self.problem, self.ranges, {source.buffer: relays for source, relays in self.relays.items()})

    @cached_property
    def ranges(self) -> Mapping[str, TileRange]:
        """Tile ranges by population id."""
        return {layer.id: where for layer, where in zip(self.problem.network.layers, self.placement.ranges, strict=True)}

    def range_of(self, layer: Layer) -> TileRange:
        """Tile range of `layer`."""
        return self.ranges[layer.id]

    def range_by_id(self, name: str) -> TileRange:
        """Tile range of the population `name`."""
        return self.ranges[name]

    def chips_of(self, first: int, stop: int) -> range:
        """Chips of the tiles ``[first, stop)``."""
        per_chip = self.problem.target.tiles_per_chip
        return range(first // per_chip, (stop - 1) // per_chip + 1)


def masks_to_relays(layout: Layout) -> Traffic:
    """Before F1: spike masks (values) of populations go to the relays of their samples."""
    traffic = Traffic.none(layout.problem)
    workers = layout.problem.target.workers
    for layer in layout.problem.network.layers:
        where = layout.range_of(layer)
        groups = column_groups(where.neurons, workers)
        for source in layer.sent:
            words = mask_words(where.neurons, workers) if source.kind == "spikes" else where.neurons
            words = 2 * words if source in layout.problem.windowed else words
            for relay in layout.relays[source]:
                own = relay.tile - where.first if where.first <= relay.tile < where.stop else None
                moved = int(words.sum()) - (int(words[own]) if own is not None else 0)
                pieces = int(groups.sum()) - (int(groups[own]) if own is not None else 0)
                traffic.add(relay.tile, relay.samples * FLOAT * moved, pieces)
                _over_links(layout, traffic, where, relay.tile, relay.samples * FLOAT * moved)
            traffic.sent[where.first : where.stop] += layout.problem.batch * FLOAT * words
    return traffic


def windows_to_blocks(layout: Layout, *, backward: bool = False) -> Traffic:
    """Before F2 and B2: windows go to every tile that reads them (backward: where weight gradients are formed)."""
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    for bus in problem.buses:
        readers = [
            layer
            for layer in problem.network.layers
            if any(
                problem.bus_of[link.id] == bus.id and (link.weight_gradient or problem.returns(link) or not backward)
                for link in layer.incoming
            )
        ]
        size = problem.backward_bytes(bus) if backward else bus.window_bytes
        _multicast(layout, traffic, bus, [layout.range_of(layer) for layer in readers], size, 2 if bus.events else 1)
    for layer in problem.network.layers if backward else ():
        for bus in returned_buses(problem, layer):
            _multicast(layout, traffic, bus, [layout.range_of(layer)], bus.returned_bytes, 3)
    return traffic


def _multicast(layout: Layout, traffic: Traffic, bus: Bus, ranges: list[TileRange], size_a_sample: int, pieces: int) -> None:
    problem, relays = layout.problem, layout.relays[bus.source]
    reading = np.zeros(problem.target.tiles, dtype=bool)
    for where in ranges:
        reading[where.first : where.stop] = True
    traffic.received += reading * float(problem.batch * size_a_sample)
    traffic.fragments += reading * float(pieces * len(relays))
    per_chip = problem.target.tiles_per_chip
    chips = {chip for where in ranges for chip in layout.chips_of(where.first, where.stop)}
    for relay in relays:
        size = relay.samples * size_a_sample
        if ranges:
            traffic.sent[relay.tile] += size
        if reading[relay.tile]:
            traffic.add(relay.tile, -size, -pieces)
        for chip in chips - {relay.tile // per_chip}:
            traffic.link[chip] += size


def deltas_to_sources(layout: Layout) -> Traffic:
    """Before B1: every tile of a source reads all deltas of its targets."""
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    for layer in problem.network.layers:
        for target, _ in problem.deltas_into(layer):
            _read_all(layout, traffic, layout.range_of(layer), layout.range_by_id(target), problem.batch * FLOAT)
    return traffic


def _read_all(layout: Layout, traffic: Traffic, reader: TileRange, writer: TileRange, bytes_a_neuron: int) -> None:
    """Each tile of `reader` reads what all tiles of `writer` hold, but for what it holds itself."""
    groups = column_groups(writer.neurons, layout.problem.target.workers)
    traffic.add(slice(reader.first, reader.stop), bytes_a_neuron * int(writer.neurons.sum()), int(groups.sum()))
    both = slice(max(reader.first, writer.first), min(reader.stop, writer.stop))
    if both.start < both.stop:
        own = slice(both.start - writer.first, both.stop - writer.first)
        traffic.add(both, -bytes_a_neuron * writer.neurons[own], -groups[own])
    traffic.sent[writer.first : writer.stop] += bytes_a_neuron * writer.neurons
    home = set(layout.chips_of(writer.first, writer.stop))
    for chip in layout.chips_of(reader.first, reader.stop):
        if home != {chip}:
            traffic.link[chip] += bytes_a_neuron * int(writer.neurons.sum()) * (1 if chip not in home else 1 - 1 / len(home))


def _over_links(layout: Layout, traffic: Traffic, writer: TileRange, tile: int, size: float) -> None:
    chip = tile // layout.problem.target.tiles_per_chip
    home = layout.chips_of(writer.first, writer.stop)
    away = sum(c != chip for c in home) / len(home)
    traffic.link[chip] += size * away


def records_to_loss(layout: Layout) -> Traffic:
    """Before L1: the records of a sample go to the tile that computes its loss."""
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    if problem.network.loss_layer is None:
        return traffic
    where = layout.range_by_id(problem.network.loss_layer)
    groups = column_groups(where.neurons, problem.target.workers)
    size = problem.steps * FLOAT
    for tile in layout.loss_tiles:
        own = tile - where.first if where.first <= tile < where.stop else None
        moved = int(where.neurons.sum()) - (int(where.neurons[own]) if own is not None else 0)
        pieces = int(groups.sum()) - (int(groups[own]) if own is not None else 0)
        traffic.add(tile, size * moved, pieces)
        _over_links(layout, traffic, where, tile, size * moved)
    traffic.sent[where.first : where.stop] += size * problem.batch * where.neurons
    return traffic


def adjoints_to_blocks(layout: Layout) -> Traffic:
    """Behind L1: the adjoints of the records return to the blocks, the losses go to one tile."""
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    if problem.network.loss_layer is None:
        return traffic
    where = layout.range_by_id(problem.network.loss_layer)
    groups = column_groups(where.neurons, problem.target.workers)
    size = problem.steps * problem.batch * FLOAT
    traffic.add(slice(where.first, where.stop), size * where.neurons, problem.batch * groups)
    first = layout.loss_tiles[0]
    traffic.add(first, FLOAT * problem.batch, len(set(layout.loss_tiles)))
    return traffic


def weights_to_copies(layout: Layout) -> Traffic:
    """Before U2's end: the source-side copies are refreshed from the targets' weights."""
    problem, traffic = layout.problem, Traffic.none(layout.problem)
    for layer in problem.network.layers:
        where = layout.range_of(layer)
        for link in layer.outgoing:
            if not problem.copies(link) or not link.weight_gradient:
                continue
            target = layout.range_by_id(link.target)
            groups = int(column_groups(target.neurons, problem.target.workers).sum())
            each = FLOAT * (link.outputs if link.dense else int(link.weight_elements > 1))
            traffic.add(slice(where.first, where.stop), each * where.neurons, groups)
            traffic.sent[target.first : target.stop] += FLOAT * link.inputs * target.neurons
            for chip in layout.chips_of(where.first, where.stop):
                if set(layout.chips_of(target.first, target.stop)) != {chip}:
                    traffic.link[chip] += each * layer.neurons / len(layout.chips_of(where.first, where.stop))
    return traffic


def flags_to_one_tile(layout: Layout) -> Traffic:
    """Before the test for overflow: a flag from every relay of a limited bus."""
    traffic = Traffic.none(layout.problem)
    flags = sum(len(layout.relays[bus.source]) for bus in layout.problem.limited)
    traffic.add(0, FLOAT * flags, flags)
    return traffic
