"""Bytes and fragments that every tile receives in the exchange before each superstep.

A fragment is a piece that is contiguous at both the sender and the receiver. Assumed layouts: deltas are stored by column group
(``[groups][batch][...]``), so a reader takes one fragment from each column group; masks and values by tile (``[tiles][batch][...]``), so a
relay takes one from each tile; a window is two fragments (ids, counts) from each relay, one for values; copied weights are one fragment
from each column group. A tile reads the samples of its replica only. Records and their adjoints are stored by column group and sample
(``[groups][batch][T][...]``), so a sample's loss takes one fragment from each column group.
Data already on the reading tile is not moved.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import Relay
from snnc.compiler.tiles.exchange.chip_links import Flows
from snnc.compiler.tiles.gradients.gradient_counts import returned_buses
from snnc.compiler.tiles.gradients.gradient_windows import BusReduction, reductions
from snnc.compiler.tiles.indexed.indexed_cycles import Holdings, estimated
from snnc.compiler.tiles.indexed.indexed_owners import Ownership
from snnc.compiler.tiles.network import BusSource, Layer, learned_rows, learned_scalars
from snnc.compiler.tiles.placement.blocks import Blocks, blocks_of, cut_key
from snnc.compiler.tiles.placement.cut import Cut
from snnc.compiler.tiles.placement.grouping import Floats, Ints, ceil_div, column_groups, sample_groups
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.placement.tile_range import TileRange
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.buses import Bus
from snnc.compiler.tiles.relays.relay_cycles import mask_rows
from snnc.compiler.tiles.schedule.window_test import Asked, WindowTest, window_test

RATES = 2 * FLOAT
"""Numbers that every update reads: the step size and a correction."""
Origin: TypeAlias = tuple[int, tuple[int, int], float]
"""A chip, its samples (first, count), and the bytes of each."""


@dataclass(eq=False)
class ExchangeTraffic:
    """The data of one exchange: arrays over tiles, and traffic between chips."""

    received: Floats
    fragments: Floats
    sent: Floats
    flows: Flows = field(default_factory=Flows)

    @classmethod
    def none(cls, problem: MappingProblem) -> ExchangeTraffic:
        """No traffic."""
        tiles = problem.target.tiles
        return cls(np.zeros(tiles), np.zeros(tiles), np.zeros(tiles))

    def merge(self, other: ExchangeTraffic) -> None:
        """Add the data of `other` to the same exchange."""
        self.received += other.received
        self.fragments += other.fragments
        self.sent += other.sent
        self.flows.merge(other.flows)

    def add(self, tiles: Ints | int, received: Any, fragments: Any) -> None:
        """Tiles receive bytes in fragments."""
        self.received[tiles] += received
        self.fragments[tiles] += fragments


@dataclass(frozen=True, eq=False)
class Layout:
    """The places of all data: the problem, the tile ranges, relays and the tile of each sample's loss."""

    problem: MappingProblem
    placement: Placement
    relays: Mapping[BusSource, tuple[Relay, ...]]
    loss_tiles: tuple[int, ...]
    exact: bool = True
    """Whether tables of indexed connections are counted exactly; while placements are compared, they are estimated."""

    @cached_property
    def window_test(self) -> WindowTest | None:
        """The test for further windows; None if windows hold everything."""
        problem = self.problem
        direction = problem.further.requested_in
        if direction is None:
            return None
        tiles = [relay.tile for bus in problem.asked for relay in self.relays[bus.source]]
        numbers = [problem.numbers_of_relay(bus) for bus in problem.asked for _ in self.relays[bus.source]]
        return window_test(direction, 1 + problem.further.both, tiles, numbers, problem.target, problem.costs["most"])

    @cached_property
    def reductions(self) -> Mapping[str, BusReduction]:
        """The windowed gradients of sources, by bus id."""
        return reductions(self.problem, self.ranges, {source.buffer: relays for source, relays in self.relays.items()})

    @cached_property
    def ranges(self) -> Mapping[str, TileRange]:
        """Tile ranges by population id."""
        return {layer.id: where for layer, where in zip(self.problem.network.layers, self.placement.ranges, strict=True)}

    def cut_of(self, layer: Layer) -> Cut:
        """How `layer` is cut."""
        return self.ranges[layer.id].cut

    @cached_property
    def copied(self) -> tuple[Ownership, ...]:
        """Indexed connections whose weights are copied from owners after every update."""
        found = []
        for link in self.problem.network.indexed if self.problem.training else ():
            if link.indexed is not None and link.indexed.owned:
                source = self.ranges[link.source.owner] if link.input_gradient else None
                found.append(Ownership(link, link.indexed, self.ranges[link.target], source))
        return tuple(found)

    @cached_property
    def owned(self) -> tuple[Ownership, ...]:
        """Those with some trained weights."""
        return tuple(found for found in self.copied if found.link.weight_gradient)

    def holdings(self, layer: Layer) -> Holdings:
        """Sizes of the tables of the connections of `layer` on each of its tiles."""
        where = self.ranges[layer.id]
        if self.exact:
            rate = self.problem.relative_rate
            return lambda link, side: link.held(side, where, rate(link.op.source.buffer) if side == "target" else None)
        return estimated(where.tile_neurons, column_groups(where.tile_neurons, where.columns))

    def kind_holdings(self, layer: Layer, blocks: Blocks) -> Holdings:
        """The same for each kind of its blocks."""
        where = self.ranges[layer.id]
        if not self.exact:
            return lambda link, side: link.estimated(side, blocks.columns, 1)
        rate = self.problem.relative_rate
        return lambda link, side: link.held_by(side, where, rate(link.op.source.buffer) if side == "target" else None, blocks.group)

    def apart(self, layer: Layer) -> bool:
        """Whether column groups of `layer` differ in cost, because each has its own tables."""
        return self.exact and any(link.indexed is not None for link in (*layer.incoming, *layer.outgoing))

    def blocks(self, layer: Layer) -> Blocks:
        """The blocks of `layer`."""
        where, apart = self.ranges[layer.id], self.apart(layer)
        workers = self.problem.target.workers
        return self.problem.kept.get(("blocks", apart, cut_key(where)), lambda: blocks_of(where, workers, apart=apart))

    def range_of(self, layer: Layer) -> TileRange:
        """Tile range of `layer`."""
        return self.ranges[layer.id]

    def range_by_id(self, name: str) -> TileRange:
        """Tile range of the population `name`."""
        return self.ranges[name]

    def chips_of(self, tiles: Ints) -> Sequence[int]:
        """Chips of tiles in ascending order."""
        first, last = self.chip_of(int(tiles[0])), self.chip_of(int(tiles[-1]))
        if last - first < 2 or tiles[-1] - tiles[0] + 1 == len(tiles):
            return range(first, last + 1)
        found: list[int] = np.unique(tiles // self.problem.target.tiles_per_chip).tolist()
        return found

    def chip_of(self, tile: int) -> int:
        """Chip of one tile."""
        return tile // self.problem.target.tiles_per_chip

    def by_chip(self, tiles: Ints, amounts: Any) -> dict[int, float]:
        """Sum amounts of tiles over their chips."""
        chips = self.chips_of(tiles)
        if len(chips) == 1:
            return {chips[0]: float(np.sum(amounts))}
        sums = np.bincount(tiles // self.problem.target.tiles_per_chip - chips[0], weights=amounts)
        return {chip: float(sums[chip - chips[0]]) for chip in chips}

    @cached_property
    def clock_tiles(self) -> Ints:
        """The first computing tile of each chip: it counts iterations for the others."""
        last = [int(where.tiles.max()) for where in self.placement.ranges] + [r.tile for some in self.relays.values() for r in some]
        found: Ints = self.problem.target.tiles_per_chip * np.arange(self.chip_of(max(last)) + 1)
        return found

    @property
    def several_chips(self) -> bool:
        """Whether anything may cross chips."""
        return self.placement.chips > 1


def common(a: tuple[int, int], b: tuple[int, int]) -> int:
    """Samples common to two ranges (first, count)."""
    return max(0, min(a[0] + a[1], b[0] + b[1]) - max(a[0], b[0]))


def clock_to_boundaries(layout: Layout) -> ExchangeTraffic:
    """Every tile with blocks, or with relays that keep steps at boundaries, reads the iteration number."""
    traffic, used = ExchangeTraffic.none(layout.problem), np.zeros(layout.problem.target.tiles, dtype=bool)
    for where in layout.placement.ranges:
        used[where.tiles] = True
    for source in layout.problem.sources_behind:
        used[[relay.tile for relay in layout.relays[source]]] = True
    return with_clock(layout, traffic, np.flatnonzero(used))


def with_clock(layout: Layout, traffic: ExchangeTraffic, readers: Ints) -> ExchangeTraffic:
    """Vertices on the tiles `readers` read the iteration number: the counter of each chip goes to those of its tiles."""
    per_chip, homes = layout.problem.target.tiles_per_chip, layout.clock_tiles
    tiles = readers[readers % per_chip != 0]
    traffic.add(tiles, FLOAT, 1)
    traffic.sent[homes[np.unique(tiles // per_chip)]] += FLOAT
    return traffic


def send_to_all(layout: Layout, traffic: ExchangeTraffic, home: int, tiles: Ints, size: int) -> None:
    """Each of `tiles` receives the same `size` bytes from the tile `home`."""
    traffic.add(tiles, size, 1)
    traffic.sent[home] += size * (len(tiles) > 0)
    if layout.several_chips:
        traffic.flows.send(layout.chip_of(home), set((tiles // layout.problem.target.tiles_per_chip).tolist()), size)


def masks_to_relays(layout: Layout) -> ExchangeTraffic:
    """Before F1: spike masks (values) of populations go to the relays of their samples."""
    traffic = ExchangeTraffic.none(layout.problem)
    for layer in layout.problem.network.layers:
        where = layout.range_of(layer)
        for source in layer.sent:
            row = FLOAT * mask_rows(layout.problem, source, where).row_words
            _gather(layout, traffic, where, layout.relays[source], row)
            traffic.sent[where.tiles] += row * where.tile_samples
    return traffic


def _gather(layout: Layout, traffic: ExchangeTraffic, where: TileRange, relays: Sequence[Relay], row: int) -> None:
    """Relays receive their samples, `row` bytes each, of all tiles of `where` but their own: one piece from each."""
    homes, first, count = np.array([(r.tile, r.sample, r.samples) for r in relays], dtype=np.int64).T
    overlap = in_common(tuple(zip(first, count, strict=True)), where.samples)
    others = (where.width - where.holds(homes)) * (overlap > 0)
    np.add.at(traffic.received, homes, row * (overlap * others).sum(axis=1))
    np.add.at(traffic.fragments, homes, others.sum(axis=1))
    if layout.several_chips:
        ones = np.ones(where.width)
        chips = [layout.by_chip(where.of(r), ones) for r in range(where.replicas)]
        for place, replica in np.argwhere(overlap > 0).tolist():
            for chip, tiles in chips[replica].items():
                traffic.flows.send(chip, (layout.chip_of(int(homes[place])),), int(overlap[place, replica]) * row * tiles)


def windows_to_blocks(layout: Layout, *, backward: bool = False) -> ExchangeTraffic:
    """Before F2 and B2: windows go to every tile that reads them (backward: tiles that form weight gradients)."""
    problem, traffic = layout.problem, ExchangeTraffic.none(layout.problem)
    for bus in problem.buses:
        readers = problem.readers(bus, backward=backward)
        if readers:
            size = problem.backward_bytes(bus) if backward else bus.window_bytes
            _multicast(layout, traffic, bus, [layout.range_of(layer) for layer in readers], (size, 2 if bus.events else 1))
    return traffic


def returned_to_blocks(layout: Layout, layers: Iterable[Layer]) -> ExchangeTraffic:
    """Before the neurons of `layers`, backward: windows of gradients return to them."""
    traffic = ExchangeTraffic.none(layout.problem)
    for layer in layers:
        for bus in returned_buses(layout.problem, layer):
            _multicast(layout, traffic, bus, [layout.range_of(layer)], (bus.returned_bytes, 3))
    return traffic


def _multicast(layout: Layout, traffic: ExchangeTraffic, bus: Bus, ranges: list[TileRange], window: tuple[int, int]) -> None:
    """Each tile reads its own samples of a bus once, however many of its populations do; `window`: bytes of a sample, pieces of a relay."""
    size, pieces = window
    problem, relays = layout.problem, layout.relays[bus.source]
    homes, first, count = np.array([(r.tile, r.sample, r.samples) for r in relays], dtype=np.int64).T
    stop = first + count
    samples, number = np.zeros(problem.target.tiles), np.zeros(problem.target.tiles)
    held = np.zeros(len(relays), dtype=np.int64)
    for where in ranges:
        samples[where.tiles] = np.maximum(samples[where.tiles], where.tile_samples)
        number[where.tiles] = np.maximum(number[where.tiles], where.windows_read(first, stop))
        held = np.maximum(held, where.held_on(homes, first, stop))
    np.subtract.at(samples, homes, held)
    np.subtract.at(number, homes, held > 0)
    np.add.at(traffic.sent, homes, count * size)
    traffic.received += float(size) * samples
    traffic.fragments += float(pieces) * number
    if layout.several_chips:
        origins = [(layout.chip_of(r.tile), (r.sample, r.samples), float(size)) for r in relays]
        _over_links(layout, traffic, origins, ranges)


def _over_links(layout: Layout, traffic: ExchangeTraffic, origins: Iterable[Origin], readers: Iterable[TileRange]) -> None:
    """Chips send samples to all chips on which tiles of `readers` handle them."""
    handled = [(held, layout.chips_of(where.of(replica))) for where in readers for replica, held in enumerate(where.samples)]
    edges = sorted({edge for (first, count), _ in handled for edge in (first, first + count)})
    chips: list[set[int]] = [set() for _ in edges]
    for (first, count), some in handled:
        for part in range(bisect_left(edges, first), bisect_left(edges, first + count)):
            chips[part].update(some)
    for chip, (first, count), size in origins:
        part = max(bisect_right(edges, first) - 1, 0)
        while part < len(edges) - 1 and edges[part] < first + count:
            shared = common((edges[part], edges[part + 1] - edges[part]), (first, count))
            traffic.flows.send(chip, chips[part], shared * size)
            part += 1


def deltas_to_sources(layout: Layout) -> ExchangeTraffic:
    """Before B1: every tile of a source reads the deltas of its targets for its samples."""
    problem, traffic = layout.problem, ExchangeTraffic.none(layout.problem)
    readers: dict[tuple[str, int], list[TileRange]] = {}
    for layer in problem.network.layers:
        for target, port in problem.whole_deltas_into(layer):
            _read_all(layout, traffic, layout.range_of(layer), layout.range_by_id(target))
            readers.setdefault((target, port), []).append(layout.range_of(layer))
    for (target, _), ranges in readers.items() if layout.several_chips else ():
        writer = layout.range_by_id(target)
        sent = [
            (chip, samples, FLOAT * neurons)
            for replica, samples in enumerate(writer.samples)
            for chip, neurons in layout.by_chip(writer.of(replica), writer.neurons).items()
        ]
        _over_links(layout, traffic, sent, ranges)
    return traffic


def _read_all(layout: Layout, traffic: ExchangeTraffic, reader: TileRange, writer: TileRange) -> None:
    """Each tile of `reader` reads what all tiles of `writer` hold for its samples, but for what it holds itself."""
    overlap = in_common(reader.samples, writer.samples)
    whole = overlap == np.array([count for _, count in writer.samples])
    neurons, tiles = int(writer.neurons.sum()), int(np.minimum(writer.neurons, 1).sum())
    pieces = np.where(whole, tiles, neurons) * (overlap > 0)
    received = FLOAT * neurons * overlap.sum(axis=1)
    traffic.add(reader.tiles, np.repeat(received, reader.width), np.repeat(pieces.sum(axis=1), reader.width))
    both, mine, own = shared_tiles(reader.tiles, writer.tiles)
    pair = mine // reader.width, own // writer.width
    held = writer.tile_neurons[own]
    traffic.add(both, -FLOAT * overlap[pair] * held, -np.where(whole[pair], np.minimum(held, 1), held) * (overlap[pair] > 0))
    traffic.sent[writer.tiles] += FLOAT * writer.tile_samples * writer.tile_neurons


def in_common(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> Ints:
    """[ranges of a, ranges of b]: samples that two (first, count) have in common."""
    (first, count), (begin, number) = (np.array(some, dtype=np.int64).T for some in (a, b))
    found: Ints = np.minimum((first + count)[:, None], begin + number) - np.maximum(first[:, None], begin)
    return np.maximum(found, 0)


def shared_tiles(a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """Tiles that both hold, and their positions in each."""
    if a[-1] < b[0] or b[-1] < a[0]:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    if int(a[-1] - a[0]) + 1 == len(a) and int(b[-1] - b[0]) + 1 == len(b):
        begin, end = max(int(a[0]), int(b[0])), min(int(a[-1]), int(b[-1])) + 1
        return np.arange(begin, end), np.arange(begin, end) - int(a[0]), np.arange(begin, end) - int(b[0])
    both, first, second = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return both, first, second


def gradients_to_shares(layout: Layout) -> ExchangeTraffic:
    """Before U1: each replica gathers its share of the gradients from all others; every tile reads the learning rate."""
    problem, traffic = layout.problem, ExchangeTraffic.none(layout.problem)
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
            for chip, size in layout.by_chip(where.tiles, learned_scalars(layer) * FLOAT * groups * shares).items():
                traffic.flows.send(chip, (layout.chip_of(int(where.tiles[0])),), size)
    return traffic


def between_replicas(layout: Layout, traffic: ExchangeTraffic, where: TileRange, rows: int, *, gathers: bool) -> None:
    """Shares of one parameter travel between the replicas of a population: each gathers its own, or sends it to all others."""
    if where.replicas == 1:
        return
    for number, elements in parameter_groups(where, rows):
        share = shares_of(where, elements)
        own, some = number * share, number * (share > 0)
        rest = own.sum(axis=0) - own
        others = where.replicas - 1
        received, pieces = (others * own, others * some) if gathers else (rest, some.sum(axis=0) - some)
        traffic.add(where.tiles, FLOAT * received.ravel(), pieces.ravel())
        traffic.sent[where.tiles] += FLOAT * (rest if gathers else own).ravel()
        if layout.several_chips:
            _replicas_over_links(layout, traffic, where, (FLOAT * own).astype(np.float64), gathers=gathers)


def parameter_groups(where: TileRange, rows: int) -> Iterator[tuple[Ints, Ints]]:
    """Column groups of one size on every tile of a replica, and elements of a parameter with `rows` rows in such a group."""
    groups = np.maximum(column_groups(where.neurons, where.columns), 1)
    size, larger = where.neurons // groups, where.neurons % groups
    for columns, number in ((size + 1, larger), (size, groups - larger)):
        yield number, rows * columns + (rows * columns % 2 if rows > 1 else 0)


def shares_of(where: TileRange, elements: Ints) -> Ints:
    """Elements of each replica's share, [replicas][tiles]: whole pairs as far as possible."""
    edges = np.minimum(2 * (ceil_div(elements, 2) * np.arange(where.replicas + 1)[:, None] // where.replicas), elements)
    found: Ints = np.diff(edges, axis=0)
    return found


def _replicas_over_links(layout: Layout, traffic: ExchangeTraffic, where: TileRange, share: Floats, *, gathers: bool) -> None:
    """Tile i of each replica sends another share to tile i of every other replica, or its own share to all of them."""
    held, shares = np.zeros((2, layout.problem.target.chips, where.width))
    for replica in range(where.replicas):
        place = where.of(replica) // layout.problem.target.tiles_per_chip, np.arange(where.width)
        held[place] += 1
        shares[place] += share[replica]
    used = np.flatnonzero(held.any(axis=1)).tolist()
    if gathers:
        moved = held @ shares.T
        for a in used:
            for b in used:
                traffic.flows.send(a, (b,), float(moved[a, b]))
        return
    some = held > 0
    changes = np.flatnonzero((some[:, 1:] != some[:, :-1]).any(axis=0)) + 1
    for part in np.split(np.arange(where.width), changes):
        receivers = np.flatnonzero(some[:, part[0]]).tolist()
        for chip in receivers:
            traffic.flows.send(chip, receivers, float(shares[chip, part].sum()))


def numbers_of_windows(layout: Layout, asked: Asked) -> ExchangeTraffic:
    """Before a level of the test for further windows: the data received by its tiles."""
    traffic = ExchangeTraffic.none(layout.problem)
    traffic.add(asked.tile, asked.received, asked.fragments)
    np.add.at(traffic.sent, asked.from_tile, asked.sent)
    if len(asked.tile) == 1:
        chip = layout.chip_of(int(asked.tile[0]))
        for source, size in layout.by_chip(asked.from_tile, asked.sent).items() if layout.several_chips else ():
            traffic.flows.send(source, (chip,), float(size))
    return traffic
