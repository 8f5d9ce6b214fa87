"""Which buses exist, and over which tiles the samples of their sources are dealt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snnc.compiler.mapping.capacity import window_capacity
from snnc.compiler.mapping.grouping import Ints, ceil_div, split
from snnc.compiler.mapping.network import Network, Source
from snnc.compiler.mapping.schedule import Schedule
from snnc.compiler.plan import Mode, Relay

COUNT_BYTES = 4


@dataclass(frozen=True)
class Bus:
    """A source seen with one lag, before its relays are placed."""

    id: str
    source: Source
    lag: int
    capacity: int

    @property
    def events(self) -> bool:
        """True when ids move."""
        return self.source.kind == "spikes"

    @property
    def window_bytes(self) -> int:
        """Bytes of one sample's window."""
        return self.capacity * id_bytes(self.source) + COUNT_BYTES if self.events else 4 * self.source.width


def id_bytes(source: Source) -> int:
    """Bytes of an id: 16 bits as long as they suffice."""
    return 2 if source.width <= 1 << 16 else 4


def make_buses(
    network: Network, schedule: Schedule, activity: Mapping[str, float] | None, capacity: Mapping[str, int] | int | None
) -> tuple[tuple[Bus, ...], dict[str, str]]:
    """Return the buses (by source, then lag) and the bus of every connection; `activity` is what was measured."""
    keys = sorted(
        {(link.source, schedule.lags[link.id]) for link in network.links},
        key=lambda key: (network.sources.index(key[0]), key[1]),
    )
    buses = tuple(
        Bus(f"b{n}", source, lag, window_capacity(source, (activity or {}).get(source.buffer), capacity) if source.kind == "spikes" else source.width)
        for n, (source, lag) in enumerate(keys)
    )
    found = {(bus.source, bus.lag): bus.id for bus in buses}
    return buses, {link.id: found[link.source, schedule.lags[link.id]] for link in network.links}


def store_bytes(source: Source, buses: Sequence[Bus], steps: int, mode: Mode) -> int:
    """Bytes of one sample on a relay: all steps (T x width, or capacity where more is dropped) and the windows of its buses."""
    mine = [bus for bus in buses if bus.source == source]
    windows = sum(bus.window_bytes for bus in mine)
    if source.kind != "spikes":
        return steps * source.width * 4 + windows
    kept = source.width if mode == "exact" else max(bus.capacity for bus in mine)
    return steps * (kept * id_bytes(source) + COUNT_BYTES) + windows


def deal_relays(
    sizes: Mapping[Source, int], held: Ints, usable: Mapping[Source, range], batch: int, workers: int, limit: int
) -> dict[Source, tuple[Relay, ...]]:
    """Deal the samples of every source over the tiles that hold least; adds what they take to `held`.

    A relay takes up to `workers` samples (each worker serves one), fewer when they would fill more than half of what a tile
    has left. Sources are dealt largest first; a tile takes at most one relay of a source. Ties go to the lowest tile.

    Parameters
    ----------
    sizes
        Bytes a sample, by source.
    held
        Bytes that each tile holds already; changed.
    usable
        Tiles to use, by source.
    limit
        Bytes of a tile.
    """
    found: dict[Source, tuple[Relay, ...]] = {}
    for source, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0].buffer)):
        where = usable[source]
        order = np.argsort(held[where.start : where.stop], kind="stable")
        room = limit - int(held[where.start + order[0]])
        each = max(1, min(workers, batch, room // 2 // max(size, 1)))
        parts = min(ceil_div(batch, each), len(order))
        chosen = sorted((order[:parts] + where.start).tolist())
        relays = [Relay(tile, first, count) for tile, (first, count) in zip(chosen, split(batch, parts), strict=True)]
        for relay in relays:
            held[relay.tile] += relay.samples * size
        found[source] = tuple(relays)
    return found
