"""Bytes and fragments that every tile receives in the exchange before each superstep, and the bytes that it sends.

A fragment is contiguous at the sender and at the receiver. The layout of the data determines how many fragments a tile receives:

- Deltas are stored by neuron (``[neurons][batch]``): a reader receives one fragment from each tile of a replica if it reads all samples of
  the replica, otherwise one for each neuron.
- Masks and values are stored by tile (``[tiles][batch][...]``): a relay receives one fragment from each tile.
- A window of events is two fragments (ids, counts) from each relay, a window of values is one fragment. A returned window of gradients is
  three fragments.
- A copy of dense weights is one fragment from each column group (two if it has 3, 5, 7, … columns; fewer if a replica of the source has
  one tile), or one from each bundle of tiles if the rows are packed.
- Records and their adjoints are stored by column group and sample (``[groups][batch][T][...]``): the loss of a sample receives one fragment
  from each column group; from a tile with only one sample, it receives one for all its groups.

A tile reads only the samples of its replica, and data already on the tile are not moved. docs/decisions/0001-poplar-program.md defines the
supersteps: F1 (relays), F2 (neurons), B1 (relays and source gradients) and B2 (adjoints of neurons).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import Relay
from snnc.compiler.machines.chip_links import Flows
from snnc.compiler.tiles.blocks.blocks import Blocks, BlockShape, blocks_of, cut_key, shapes
from snnc.compiler.tiles.blocks.grouping import Bools, Floats, Ints, ceil_div, column_groups
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.cycles.indexed_cycles import Holdings, estimated
from snnc.compiler.tiles.exchange.gradient_windows import BusReduction, reductions
from snnc.compiler.tiles.exchange.indexed_owners import Ownership
from snnc.compiler.tiles.mapped.network import BusSource, Layer
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_cycles import mask_rows
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.schedule.window_test import LevelReads, WindowTest, window_test
from snnc.compiler.tiles.vertices.control_vertices import most

Origin: TypeAlias = tuple[int, tuple[int, int], float]
"""A chip, its samples (first, count), and the bytes of one sample."""


@dataclass(eq=False)
class ExchangeTraffic:
    """Amounts of data in one exchange: bytes received, fragments received and bytes sent by each tile, and flows between chips."""

    received: Floats
    fragments: Floats
    sent: Floats
    flows: Flows = field(default_factory=Flows)

    @classmethod
    def none(cls, problem: MappingProblem) -> ExchangeTraffic:
        """Return an exchange without data."""
        tiles = problem.target.tiles
        return cls(np.zeros(tiles), np.zeros(tiles), np.zeros(tiles))

    def merge(self, other: ExchangeTraffic) -> None:
        """Add the amounts of `other`, whose data move in the same exchange."""
        self.received += other.received
        self.fragments += other.fragments
        self.sent += other.sent
        self.flows.merge(other.flows)

    def add(self, tiles: Ints | int, received: Any, fragments: Any) -> None:
        """Add bytes and fragments that `tiles` receive."""
        self.received[tiles] += received
        self.fragments[tiles] += fragments


@dataclass(frozen=True, eq=False)
class Layout:
    """The tiles of a plan: tile ranges of populations, relays of sources, and the tile of each sample's loss."""

    problem: MappingProblem
    placement: Placement
    relays: Mapping[BusSource, tuple[Relay, ...]]
    loss_tiles: tuple[int, ...]
    """Tile of the loss of each sample; empty if the program computes no loss."""
    exact: bool = True
    """Whether tables of indexed connections are counted exactly; they are estimated while placements are compared."""

    @cached_property
    def window_test(self) -> WindowTest | None:
        """The test for further windows; None if no relay requests any."""
        problem = self.problem
        direction = problem.further.requested_in
        if direction is None:
            return None
        tiles = [relay.tile for bus in problem.requesting_buses for relay in self.relays[bus.source]]
        lengths = [problem.request_length(bus) for bus in problem.requesting_buses for _ in self.relays[bus.source]]
        return window_test(direction, 1 + problem.further.both, tiles, lengths, problem.target, most(problem.costs))

    @cached_property
    def reductions(self) -> Mapping[str, BusReduction]:
        """Reductions of windowed input gradients, by bus id."""
        return reductions(self.problem, self.ranges, {source.buffer: relays for source, relays in self.relays.items()})

    @cached_property
    def ranges(self) -> Mapping[str, TileRange]:
        """Tile ranges by population id."""
        return {layer.id: where for layer, where in zip(self.problem.network.layers, self.placement.ranges, strict=True)}

    @cached_property
    def copied(self) -> tuple[Ownership, ...]:
        """Indexed connections whose weights are copied from owners after every update."""
        connections = []
        for link in self.problem.network.indexed if self.problem.training else ():
            if link.indexed is not None and link.indexed.owned:
                source = self.ranges[link.source.owner] if link.input_gradient else None
                connections.append(Ownership(link, link.indexed, self.ranges[link.target], source))
        return tuple(connections)

    @cached_property
    def owned(self) -> tuple[Ownership, ...]:
        """Connections of :attr:`copied` whose weights are trained."""
        return tuple(connection for connection in self.copied if connection.link.weight_gradient)

    def holdings(self, layer: Layer) -> Holdings:
        """Return the :data:`Holdings` of `layer`: the sizes of a connection's tables on each of its tiles."""
        where = self.ranges[layer.id]
        if self.exact:
            rate = self.problem.relative_rate
            return lambda link, side: link.held(side, where, rate(link.op.source.buffer) if side == "target" else None)
        return estimated(where.tile_neurons, column_groups(where.tile_neurons, where.columns))

    def kind_holdings(self, layer: Layer, blocks: Blocks) -> Holdings:
        """Return the :data:`Holdings` of `layer` for each kind of `blocks` (blocks of equal cost): the sizes of a connection's tables."""
        where = self.ranges[layer.id]
        if not self.exact:
            return lambda link, side: link.estimated(side, blocks.columns, 1)
        rate = self.problem.relative_rate
        return lambda link, side: link.held_by(side, where, rate(link.op.source.buffer) if side == "target" else None, blocks.group)

    def distinct_groups(self, layer: Layer) -> bool:
        """Return whether column groups of equal size may differ in cost: tables of indexed connections differ in size."""
        return self.exact and any(link.indexed is not None for link in (*layer.incoming, *layer.outgoing))

    def blocks(self, layer: Layer) -> Blocks:
        """Return the blocks of `layer`."""
        where, distinct_groups = self.ranges[layer.id], self.distinct_groups(layer)
        workers = self.problem.target.workers
        return self.problem.memo.get(
            ("blocks", distinct_groups, cut_key(where)),
            lambda: blocks_of(where, workers, distinct_groups=distinct_groups, pairs=self.problem.network.half_deltas),
        )

    def shapes(self, layer: Layer) -> Iterator[BlockShape]:
        """Yield the sizes of the blocks of `layer`, with their number on each of its tiles."""
        where, workers = self.ranges[layer.id], self.problem.target.workers
        return shapes(where.cut, where.tile_neurons, where.tile_samples, workers, pairs=self.problem.network.half_deltas)

    def chips_of(self, tiles: Ints) -> Sequence[int]:
        """Return the chips of `tiles`; both are in ascending order."""
        first, last = self.chip_of(int(tiles[0])), self.chip_of(int(tiles[-1]))
        if last - first < 2 or tiles[-1] - tiles[0] + 1 == len(tiles):
            return range(first, last + 1)
        chips: list[int] = np.unique(tiles // self.problem.target.tiles_per_chip).tolist()
        return chips

    def chip_of(self, tile: int) -> int:
        """Return the chip of a tile."""
        return tile // self.problem.target.tiles_per_chip

    def by_chip(self, tiles: Ints, amounts: Any) -> dict[int, float]:
        """Return the sum of `amounts`, one for each of `tiles` (in ascending order), on each chip."""
        chips = self.chips_of(tiles)
        if len(chips) == 1:
            return {chips[0]: float(np.sum(amounts))}
        sums = np.bincount(tiles // self.problem.target.tiles_per_chip - chips[0], weights=amounts)
        return {chip: float(sums[chip - chips[0]]) for chip in chips}

    @cached_property
    def clock_tiles(self) -> Ints:
        """The first tile of each chip, up to the last chip in use; it counts the iterations for all tiles of the chip."""
        last = [int(where.tiles.max()) for where in self.placement.ranges] + [r.tile for some in self.relays.values() for r in some]
        return self.problem.target.tiles_per_chip * np.arange(self.chip_of(max(last)) + 1)

    @property
    def several_chips(self) -> bool:
        """Whether data may cross chips."""
        return self.placement.chips > 1


def common(a: tuple[int, int], b: tuple[int, int]) -> int:
    """Return the number of samples that two ranges (first, count) share."""
    return max(0, min(a[0] + a[1], b[0] + b[1]) - max(a[0], b[0]))


def clock_to_boundaries(layout: Layout) -> ExchangeTraffic:
    """Return the exchange at boundaries of segments: tiles that save states read the iteration number."""
    traffic, used = ExchangeTraffic.none(layout.problem), np.zeros(layout.problem.target.tiles, dtype=bool)
    for where in layout.placement.ranges:
        used[where.tiles] = True
    for source in layout.problem.sources_at_boundaries:
        used[[relay.tile for relay in layout.relays[source]]] = True
    return with_clock(layout, traffic, np.flatnonzero(used))


def with_clock(layout: Layout, traffic: ExchangeTraffic, readers: Ints) -> ExchangeTraffic:
    """Add the iteration number, which the clock tile of each chip sends to the tiles of that chip in `readers`."""
    per_chip, homes = layout.problem.target.tiles_per_chip, layout.clock_tiles
    tiles = readers[readers % per_chip != 0]
    traffic.add(tiles, FLOAT, 1)
    traffic.sent[homes[np.unique(tiles // per_chip)]] += FLOAT
    return traffic


def send_to_all(layout: Layout, traffic: ExchangeTraffic, home: int, tiles: Ints, size: int) -> None:
    """Add `size` bytes that the tile `home` sends to each of `tiles`."""
    traffic.add(tiles, size, 1)
    traffic.sent[home] += size * (len(tiles) > 0)
    if layout.several_chips:
        traffic.flows.send(layout.chip_of(home), set((tiles // layout.problem.target.tiles_per_chip).tolist()), size)


def send_over_links(layout: Layout, traffic: ExchangeTraffic, source: Ints, to: Ints, sizes: npt.ArrayLike) -> None:
    """Add bytes that cross chips; the arrays have one element for each pair of tiles."""
    if layout.several_chips:
        each = layout.problem.target.tiles_per_chip
        traffic.flows.send_pairs(source // each, to // each, sizes, layout.problem.target.chips)


def masks_to_relays(layout: Layout) -> ExchangeTraffic:
    """Return the exchange before F1: relays receive the spike masks, or values, of populations for their samples."""
    traffic = ExchangeTraffic.none(layout.problem)
    for layer in layout.problem.network.layers:
        where = layout.ranges[layer.id]
        for source in layer.sent:
            row = FLOAT * mask_rows(layout.problem, source, where).row_words
            _gather(layout, traffic, where, layout.relays[source], row)
            traffic.sent[where.tiles] += row * where.tile_samples
    return traffic


def _gather(layout: Layout, traffic: ExchangeTraffic, where: TileRange, relays: Sequence[Relay], row: int) -> None:
    """Add the `row` bytes per sample that each relay receives, in one fragment, from every other tile of `where` that has its samples."""
    homes, first, count = np.array([(r.tile, r.sample, r.samples) for r in relays], dtype=np.int64).T
    shared = _shared_samples(tuple(zip(first, count, strict=True)), where.samples)
    others = (where.width - where.contains(homes)) * (shared > 0)
    np.add.at(traffic.received, homes, row * (shared * others).sum(axis=1))
    np.add.at(traffic.fragments, homes, others.sum(axis=1))
    if layout.several_chips:
        ones = np.ones(where.width)
        chips = [layout.by_chip(where.of(r), ones) for r in range(where.replicas)]
        for relay, replica in np.argwhere(shared > 0).tolist():
            for chip, tiles in chips[replica].items():
                traffic.flows.send(chip, (layout.chip_of(int(homes[relay])),), int(shared[relay, replica]) * row * tiles)


def windows_to_blocks(layout: Layout, *, backward: bool = False, further: bool = False) -> ExchangeTraffic:
    """Return the exchange before F2, or before B2 if `backward`: tiles receive the windows that they read in this superstep.

    With `further`, the windows are further ones, which only buses with limited windows have.
    """
    problem, traffic = layout.problem, ExchangeTraffic.none(layout.problem)
    for bus in problem.limited(backward=backward) if further else problem.buses:
        readers = problem.readers(bus, backward=backward)
        if readers:
            size = problem.backward_bytes(bus) if backward else bus.window_bytes
            _multicast(layout, traffic, bus, [layout.ranges[layer.id] for layer in readers], (size, 2 if bus.events else 1))
    return traffic


def returned_to_blocks(layout: Layout, layers: Iterable[Layer]) -> ExchangeTraffic:
    """Return the exchange before B2 of `layers`: windows of gradients return to their tiles."""
    traffic = ExchangeTraffic.none(layout.problem)
    for layer in layers:
        for bus in layout.problem.returned_buses(layer):
            _multicast(layout, traffic, bus, [layout.ranges[layer.id]], (bus.returned_bytes, 3))
    return traffic


def _multicast(layout: Layout, traffic: ExchangeTraffic, bus: Bus, ranges: list[TileRange], window: tuple[int, int]) -> None:
    """Add the samples of a bus that tiles of `ranges` receive; a tile that several populations share receives each sample once.

    `window` contains the bytes per sample and the number of fragments from a relay.
    """
    size, pieces = window
    problem, relays = layout.problem, layout.relays[bus.source]
    homes, first, count = np.array([(r.tile, r.sample, r.samples) for r in relays], dtype=np.int64).T
    stop = first + count
    samples, windows = np.zeros(problem.target.tiles), np.zeros(problem.target.tiles)
    local = np.zeros(len(relays), dtype=np.int64)
    for where in ranges:
        samples[where.tiles] = np.maximum(samples[where.tiles], where.tile_samples)
        windows[where.tiles] = np.maximum(windows[where.tiles], where.windows_read(first, stop))
        local = np.maximum(local, where.samples_on(homes, first, stop))
    np.subtract.at(samples, homes, local)
    np.subtract.at(windows, homes, local > 0)
    np.add.at(traffic.sent, homes, count * size)
    traffic.received += float(size) * samples
    traffic.fragments += float(pieces) * windows
    if layout.several_chips:
        origins = [(layout.chip_of(r.tile), (r.sample, r.samples), float(size)) for r in relays]
        _over_links(layout, traffic, origins, ranges)


def _over_links(layout: Layout, traffic: ExchangeTraffic, origins: Iterable[Origin], readers: Iterable[TileRange]) -> None:
    """Add the bytes that cross chips: each of `origins` sends its samples to every chip on which `readers` process them."""
    read = [(samples, layout.chips_of(where.of(replica))) for where in readers for replica, samples in enumerate(where.samples)]
    edges = sorted({edge for (first, count), _ in read for edge in (first, first + count)})
    chips: list[set[int]] = [set() for _ in edges]
    for (first, count), some in read:
        for part in range(bisect_left(edges, first), bisect_left(edges, first + count)):
            chips[part].update(some)
    for chip, (first, count), size in origins:
        part = max(bisect_right(edges, first) - 1, 0)
        while part < len(edges) - 1 and edges[part] < first + count:
            shared = common((edges[part], edges[part + 1] - edges[part]), (first, count))
            traffic.flows.send(chip, chips[part], shared * size)
            part += 1


def deltas_to_sources(layout: Layout) -> ExchangeTraffic:
    """Return the exchange before B1: tiles of sources read all deltas of their samples, except over indexed and windowed connections."""
    problem, traffic = layout.problem, ExchangeTraffic.none(layout.problem)
    readers: dict[tuple[str, int], list[TileRange]] = {}
    for layer in problem.network.layers:
        for target, port in problem.whole_deltas_into(layer):
            size = problem.delta_bytes(target, port)
            _read_all(traffic, layout.ranges[layer.id], layout.ranges[target], size)
            readers.setdefault((target, port), []).append(layout.ranges[layer.id])
    for (target, port), ranges in readers.items() if layout.several_chips else ():
        writer, size = layout.ranges[target], problem.delta_bytes(target, port)
        sent = [
            (chip, samples, float(size * neurons))
            for replica, samples in enumerate(writer.samples)
            for chip, neurons in layout.by_chip(writer.of(replica), writer.neurons).items()
        ]
        _over_links(layout, traffic, sent, ranges)
    return traffic


def _read_all(traffic: ExchangeTraffic, reader: TileRange, writer: TileRange, size: int) -> None:
    """Add the values of `size` bytes of `writer` that every tile of `reader` reads for its samples, except those in its own memory."""
    shared = _shared_samples(reader.samples, writer.samples)
    complete = shared == np.array([count for _, count in writer.samples])
    neurons, tiles = int(writer.neurons.sum()), int(np.minimum(writer.neurons, 1).sum())
    fragments = np.where(complete, tiles, neurons) * (shared > 0)
    received = size * neurons * shared.sum(axis=1)
    traffic.add(reader.tiles, np.repeat(received, reader.width), np.repeat(fragments.sum(axis=1), reader.width))
    shared_by_both, in_reader, in_writer = shared_tiles(reader.tiles, writer.tiles)
    pair = in_reader // reader.width, in_writer // writer.width
    local = writer.tile_neurons[in_writer]
    traffic.add(shared_by_both, -size * shared[pair] * local, -np.where(complete[pair], np.minimum(local, 1), local) * (shared[pair] > 0))
    traffic.sent[writer.tiles] += size * writer.tile_samples * writer.tile_neurons


def _shared_samples(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> Ints:
    (first_a, count_a), (first_b, count_b) = (np.array(ranges, dtype=np.int64).T for ranges in (a, b))
    shared: Ints = np.minimum((first_a + count_a)[:, None], first_b + count_b) - np.maximum(first_a[:, None], first_b)
    return np.maximum(shared, 0)


def shared_tiles(a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the tiles that are in both of `a` and `b`, and their positions in each."""
    if a[-1] < b[0] or b[-1] < a[0]:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    if int(a[-1] - a[0]) + 1 == len(a) and int(b[-1] - b[0]) + 1 == len(b):
        begin, end = max(int(a[0]), int(b[0])), min(int(a[-1]), int(b[-1])) + 1
        return np.arange(begin, end), np.arange(begin, end) - int(a[0]), np.arange(begin, end) - int(b[0])
    tiles, first, second = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return tiles, first, second


def between_replicas(layout: Layout, traffic: ExchangeTraffic, where: TileRange, rows: int, *, gathers: bool, size: int = FLOAT) -> None:
    """Add the exchange of a parameter, of which each replica updates a share; a value has `size` bytes.

    If `gathers`, each replica receives the gradients of its share from all others; else it sends its updated share to all others.
    """
    if where.replicas == 1:
        return
    joined = np.zeros((where.replicas, where.width), dtype=bool)
    for number, elements in parameter_groups(where, rows):
        share = shares_of(where, elements)
        owned, pieces = number * share, _pieces(number, share, elements, joined)
        rest = owned.sum(axis=0) - owned
        others = where.replicas - 1
        received, fragments = (others * owned, others * pieces) if gathers else (rest, pieces.sum(axis=0) - pieces)
        traffic.add(where.tiles, size * received.ravel(), fragments.ravel())
        traffic.sent[where.tiles] += size * (rest if gathers else owned).ravel()
        if layout.several_chips:
            _replicas_over_links(layout, traffic, where, (size * owned).astype(np.float64), gathers=gathers)


def _pieces(number: Ints, share: Ints, elements: Ints, joined: Bools) -> Ints:
    """Return the number of contiguous pieces in the shares of `number` column groups of one size, ``[replicas][tiles]``.

    Column groups of a tile are adjacent in memory, so all groups that one replica owns completely (biases of one or two neurons) form one
    piece. `joined` marks the shares in which groups of the other size already form such a piece; it is updated.
    """
    complete = (share == elements) & (share > 0) & (number > 0)
    pieces: Ints = np.where(complete, ~joined, number * (share > 0))
    joined |= complete
    return pieces


def parameter_groups(where: TileRange, rows: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield, for each size of column group, the numbers of groups and of elements per group, on each tile of a replica.

    A parameter has `rows` elements per neuron. If `rows` > 1, the elements of a group are padded to an even number.
    """
    groups = np.maximum(column_groups(where.neurons, where.columns), 1)
    size, larger = where.neurons // groups, where.neurons % groups
    for columns, number in ((size + 1, larger), (size, groups - larger)):
        yield number, rows * columns + (rows * columns % 2 if rows > 1 else 0)


def shares_of(where: TileRange, elements: Ints) -> Ints:
    """Return the number of elements in each replica's share, ``[replicas][tiles]``; it is even where possible."""
    edges = np.minimum(2 * (ceil_div(elements, 2) * np.arange(where.replicas + 1)[:, None] // where.replicas), elements)
    number: Ints = np.diff(edges, axis=0)
    return number


def _replicas_over_links(layout: Layout, traffic: ExchangeTraffic, where: TileRange, share: Floats, *, gathers: bool) -> None:
    """Add the data that tile i of each replica sends to tile i of every other replica, if these are on different chips."""
    used, shares = np.zeros((2, layout.problem.target.chips, where.width))
    for replica in range(where.replicas):
        position = where.of(replica) // layout.problem.target.tiles_per_chip, np.arange(where.width)
        used[position] += 1
        shares[position] += share[replica]
    if gathers:
        traffic.flows.send_each(used @ shares.T)
        return
    on_chip = used > 0
    changes = np.flatnonzero((on_chip[:, 1:] != on_chip[:, :-1]).any(axis=0)) + 1
    for part in np.split(np.arange(where.width), changes):
        receivers = np.flatnonzero(on_chip[:, part[0]]).tolist()
        for chip in receivers:
            traffic.flows.send(chip, receivers, float(shares[chip, part].sum()))


def requests_exchange(layout: Layout, reads: LevelReads) -> ExchangeTraffic:
    """Return the exchange before a level of the test for further windows: tiles of this level receive the requests of the level below."""
    traffic = ExchangeTraffic.none(layout.problem)
    traffic.add(reads.tile, reads.received, reads.fragments)
    np.add.at(traffic.sent, reads.from_tile, reads.sent)
    if len(reads.tile) == 1:
        chip = layout.chip_of(int(reads.tile[0]))
        for source, size in layout.by_chip(reads.from_tile, reads.sent).items() if layout.several_chips else ():
            traffic.flows.send(source, (chip,), float(size))
    return traffic
