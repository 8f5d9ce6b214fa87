"""Distribution of the samples of each source to relays.

A relay is a tile that stores the spikes or values of a source for some samples, and sends them to the tiles that read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import Relay
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, ceil_div, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.mapped.network import BusSource
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_cycles import MaskRows, compact_work, mask_rows, windows_work

_TRIED: Final = tuple(sorted({n for k in range(16) for n in (1 << k, 3 << k)}))
"""Numbers of samples per relay to try: 1, 2, 3, 4, 6, 8, 12 …"""


def _relay_cycles(problem: MappingProblem, source: BusSource, rows: MaskRows | None, samples: Ints) -> Floats:
    """Return, for each number of samples per relay in `samples`, the tile cycles of an iteration of both passes in a relay."""
    target = problem.target
    works = [windows_work(problem, source, rows, samples, forward=True)]
    if rows is not None and source.kind == "spikes":
        works.append(compact_work(problem, source, rows, samples))
    if problem.training:
        works.append(windows_work(problem, source, None, samples, forward=False))
    found: Floats = sum((target.workers * work.cycles for work in works), np.zeros(len(samples)))
    if rows is not None:
        found += samples * FLOAT * rows.all * rows.unit / target.exchange_bytes_per_cycle
    return found


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
    (one unit per relay and one per sample, and an initial amount on the first tile of each chip), then those with the least other
    computation in the same superstep (`computing`, in cycles), then those with the fewest bytes in use (`held`).
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
