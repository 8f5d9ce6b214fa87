"""Layouts: placements of populations, with relays and losses distributed over the tiles.

A relay is a tile that stores the spikes or values of a source for some samples, and sends them to the tiles that read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import Relay
from snnc.compiler.tiles.blocks.blocks import cut_key
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, ceil_div, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.cycles.block_cycles import block_cycles
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.mapped.network import BusSource, Layer
from snnc.compiler.tiles.memory.block_memory import estimated_bytes, most_bytes
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_cycles import MaskRows, compact_work, mask_rows, windows_work


def make_layout(problem: MappingProblem, placement: Placement, *, local_relays: bool) -> Layout:
    """Place relays and losses on tiles.

    With `local_relays`, relays are on the chips of their source, those of an input on the chips of its first reader. Otherwise they may be
    on all chips of their group, that is, of their copy of the network.
    """
    used = np.zeros(problem.target.tiles, dtype=np.int64)
    ranges = {layer.id: where for layer, where in zip(problem.network.layers, placement.ranges, strict=True)}
    for layer in problem.network.layers:
        where = ranges[layer.id]
        used[where.tiles] += _most_bytes(problem, layer, where)
    rooms = {}
    for source in problem.network.sources:
        owner = source.owner if not source.external else next(link.target for link in problem.network.links if link.source == source)
        rooms[source] = _rooms(problem, placement, ranges[owner], local_relays=local_relays)
    relays = distribute_relays(problem, used, rooms, ranges, _forward_cycles(problem, ranges))
    return Layout(problem, placement, relays, _loss_tiles(problem, used, ranges))


def _most_bytes(problem: MappingProblem, layer: Layer, where: TileRange) -> Ints:
    return problem.memo.get(("most bytes", layer.id, cut_key(where)), lambda: most_bytes(problem, estimated_bytes(problem, layer, where)))


def _forward_cycles(problem: MappingProblem, ranges: Mapping[str, TileRange]) -> Floats:
    """Return the cycles of blocks on each tile while relays search for spikes; 0 if the two are separate supersteps."""
    total = np.zeros(problem.target.tiles)
    for layer in problem.network.layers if problem.fused is not None else ():
        where = ranges[layer.id]
        args = (problem, layer, where.cut, where.tile_neurons, where.tile_samples, "forward")
        cycles = problem.memo.get(("computing", layer.id, cut_key(where)), partial(block_cycles, *args))
        np.add.at(total, where.tiles, problem.target.workers * np.broadcast_to(cycles, where.tiles.shape))
    return total


def _rooms(problem: MappingProblem, placement: Placement, where: TileRange, *, local_relays: bool) -> list[Room]:
    """Return the tiles allowed for relays in each group of chips: all of the group, or with `local_relays` the chips of `where` in it."""
    per_chip, copies = problem.target.tiles_per_chip, placement.copies
    group = -(-placement.chips // copies) * per_chip
    replicas_of_copy = where.replicas // copies
    rooms = []
    for copy, (sample, samples) in enumerate(split(problem.batch, copies)):
        first, stop = copy * group, min((copy + 1) * group, placement.chips * per_chip)
        if local_relays:
            tiles = where.tiles[copy * replicas_of_copy * where.width : (copy + 1) * replicas_of_copy * where.width]
            first, stop = int(tiles.min()) // per_chip * per_chip, (int(tiles.max()) // per_chip + 1) * per_chip
        rooms.append(Room(first, stop, sample, samples))
    return rooms


def _loss_tiles(problem: MappingProblem, used: Ints, ranges: Mapping[str, TileRange]) -> tuple[int, ...]:
    """Assign the losses of samples in turn to the tiles of the chips on which their outputs are computed, the emptiest tiles first.

    The result is empty if no layer computes a loss.
    """
    if not problem.training or problem.network.loss_layer is None:
        return ()
    where, per_chip = ranges[problem.network.loss_layer], problem.target.tiles_per_chip
    tile_of_loss = np.zeros(problem.batch, dtype=np.int64)
    assigned: dict[tuple[int, int], int] = {}
    for replica, (first, count) in enumerate(where.samples):
        tiles = where.of(replica)
        room = int(tiles.min()) // per_chip * per_chip, (int(tiles.max()) // per_chip + 1) * per_chip
        order = np.argsort(used[slice(*room)], kind="stable") + room[0]
        begin = assigned.get(room, 0)
        tile_of_loss[first : first + count] = order[(begin + np.arange(count)) % len(order)]
        assigned[room] = begin + count
    return tuple(tile_of_loss.tolist())


_TRIED: Final = tuple(sorted({n for k in range(16) for n in (1 << k, 3 << k)}))
"""Numbers of samples per relay to try: 1, 2, 3, 4, 6, 8, 12 …"""


def _relay_cycles(problem: MappingProblem, source: BusSource, rows: MaskRows | None, samples: Ints) -> Floats:
    target = problem.target
    works = [windows_work(problem, source, rows, samples, forward=True)]
    if rows is not None and source.kind == "spikes":
        works.append(compact_work(problem, source, rows, samples))
    if problem.training:
        works.append(windows_work(problem, source, None, samples, forward=False))
    total: Floats = sum((target.workers * work.cycles for work in works), np.zeros(len(samples)))
    if rows is not None:
        total += samples * FLOAT * rows.all * rows.unit / target.exchange_bytes_per_cycle
    return total


def _share(problem: MappingProblem, source: BusSource, ranges: Mapping[str, TileRange], most: int) -> int:
    """Return the number of samples per relay, at most `most`, with the fewest estimated cycles of the relay and its readers."""
    rows = None if source.external else mask_rows(problem, source, ranges[source.owner])
    tried = np.array(sorted({most, *(n for n in _TRIED if n <= most)}))
    cycles = _relay_cycles(problem, source, rows, tried)
    fragments = np.zeros(len(tried))
    if rows is not None:
        fragments += rows.tiles * _parts_of(tried, ranges[source.owner].most_samples)
    for bus in problem.buses_of(source):
        for backward in (False, True) if problem.training else (False,):
            read = [_parts_of(ranges[layer.id].most_samples, tried) for layer in problem.readers(bus, backward=backward)]
            fragments += (2 if bus.events else 1) * np.max(read, axis=0, initial=0)
    return int(tried[int(np.argmin(cycles + fragments * problem.target.fragment_cycles))])


def _parts_of(samples: Any, size: Any) -> Any:
    """Return the number of consecutive ranges of `size` samples that a range of `samples` samples overlaps."""
    return np.where(samples % size == 0, samples // size, np.where(size % samples == 0, 1, ceil_div(samples, size) + 1))


@dataclass(frozen=True)
class Room:
    """The tiles ``[first, stop)``, on which relays of the samples ``[sample, sample + samples)`` may be placed."""

    first: int
    stop: int
    sample: int
    samples: int


def distribute_relays(
    problem: MappingProblem, held: Ints, rooms: Mapping[BusSource, Sequence[Room]], ranges: Mapping[str, TileRange], computing: Floats
) -> dict[BusSource, tuple[Relay, ...]]:
    """Distribute the samples of every source over the least loaded tiles of its `rooms`, and add their bytes to `held`.

    Sources are assigned in the order of decreasing bytes per sample. The number of samples per relay is the one with the fewest estimated
    cycles, among those that need at most half of the free memory of the emptiest tile. If this results in more relays than tiles, every
    tile gets a relay with more samples. A tile has at most one relay of a source.

    Tiles on which the relay would need at most half of the free memory come first. Among these, tiles with the least relay work come first
    (one unit per relay and one per sample, and an initial amount on the first tile of each chip, which counts the iterations), then those
    with the least other computation in the same superstep (`computing`, in cycles), then those with the fewest bytes in use (`held`).
    """
    placed: dict[BusSource, tuple[Relay, ...]] = {}
    busy = np.zeros(problem.target.tiles)
    busy[:: problem.target.tiles_per_chip] = problem.target.vertex_start_cycles
    for source, size in sorted(problem.store_sizes.items(), key=lambda item: (-item[1], item[0].buffer)):
        relays: list[Relay] = []
        for room in rooms[source]:
            tiles = slice(room.first, room.stop)
            free = problem.target.tile_bytes - int(held[tiles].min())
            most = max(1, min(room.samples, free // 2 // max(size, 1)))
            samples_per_relay = _share(problem, source, ranges, most)
            full = 2 * samples_per_relay * size > problem.target.tile_bytes - held[tiles]
            order = np.lexsort((held[tiles], computing[tiles], busy[tiles], full))
            parts = min(ceil_div(room.samples, samples_per_relay), len(order))
            chosen = sorted((order[:parts] + room.first).tolist())
            shares = split(room.samples, parts)
            relays += [Relay(tile, room.sample + first, count) for tile, (first, count) in zip(chosen, shares, strict=True)]
        for relay in relays:
            held[relay.tile] += relay.samples * size
            busy[relay.tile] += 1 + relay.samples
        placed[source] = tuple(relays)
    return placed
