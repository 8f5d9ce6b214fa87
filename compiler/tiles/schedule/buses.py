"""Buses of a network, and sizes of their windows.

A bus connects a source, through tiles called relays, with all tiles that read it a certain number of iterations later (the lag). It carries
the data of one step as a window: a list of ids of spikes with a fixed capacity, or values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snnc.compiler.tiles.mapped.network import BusSource, MappedNetwork
from snnc.compiler.tiles.schedule.capacity import gradient_capacity, window_capacity
from snnc.compiler.tiles.schedule.schedule import TileSchedule

COUNT_BYTES = 4
"""Bytes of the number of ids in a window."""


@dataclass(frozen=True)
class Bus:
    """A bus before its relays are placed: all connections that read one source with the same lag."""

    id: str
    source: BusSource
    lag: int
    capacity: int
    gradient_capacity: int = 0
    """Maximum number of entries per sample of a backward window, if gradients can return in windows; else 0."""

    @property
    def events(self) -> bool:
        """Whether the bus transports ids of spikes, not values."""
        return self.source.kind == "spikes"

    @property
    def id_bytes(self) -> int:
        """Bytes of an id."""
        return id_bytes(self.source)

    @property
    def window_bytes(self) -> int:
        """Bytes of one sample's window."""
        return whole_words(self.capacity, self.source.width) * id_bytes(self.source) + COUNT_BYTES if self.events else 4 * self.source.width

    @property
    def support_bytes(self) -> int:
        """Bytes of one sample's backward window: ids of the neurons that receive a gradient, and two counts."""
        return whole_words(self.gradient_capacity, self.source.width) * id_bytes(self.source) + 2 * COUNT_BYTES

    @property
    def returned_bytes(self) -> int:
        """Bytes of one sample's window of gradients: the backward window with a float for each id."""
        return self.support_bytes + 4 * self.gradient_capacity


def id_bytes(source: BusSource) -> int:
    """Return the bytes of an id: 2 if 16 bits suffice, else 4."""
    return 2 if source.width <= 1 << 16 else 4


def whole_words(ids: int, width: int) -> int:
    """Return the number of ids for which a list of `ids` ids has space: an even number of 16-bit ids, because lists are copied in words.

    The number of values of the source, `width`, determines the size of an id.
    """
    return ids + ids % 2 if width <= 1 << 16 else ids


def make_buses(
    network: MappedNetwork,
    schedule: TileSchedule,
    activity: Mapping[str, float] | None,
    capacity: Mapping[str, int] | int | None,
    support: Mapping[str, float] | None = None,
    gradients: Mapping[str, int] | int | None = None,
) -> tuple[tuple[Bus, ...], dict[str, str]]:
    """Return the buses (by source, then lag) and the bus of every connection.

    `activity` and `support` are measured fractions of values that spike, and of neurons that receive a gradient in a step. `capacity` and
    `gradients` are the user's capacities of forward windows and of gradient windows.
    """
    keys = sorted(
        {(link.source, schedule.lags[link.id]) for link in network.links},
        key=lambda key: (network.sources.index(key[0]), key[1]),
    )
    room = {s: window_capacity(s, (activity or {}).get(s.buffer), capacity) for s, _ in keys}
    entries = {s: gradient_capacity(s, room[s], (support or {}).get(s.buffer), gradients) for s, _ in keys}
    buses = tuple(Bus(f"b{n}", source, lag, room[source], entries[source]) for n, (source, lag) in enumerate(keys))
    found = {(bus.source, bus.lag): bus.id for bus in buses}
    return buses, {link.id: found[link.source, schedule.lags[link.id]] for link in network.links}


def bit_words(width: int) -> int:
    """Return the number of 32-bit words of one bit for each of `width` values."""
    return -(-width // 32)
