"""Which buses exist, how much their windows hold and what a relay keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snnc.compiler.mapping.capacity import window_capacity
from snnc.compiler.mapping.network import Network, Source
from snnc.compiler.mapping.schedule import Schedule
from snnc.compiler.plan import Mode

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
    def id_bytes(self) -> int:
        """Bytes of an id."""
        return id_bytes(self.source)

    @property
    def window_bytes(self) -> int:
        """Bytes of one sample's window."""
        return whole_words(self.capacity, self.source.width) * id_bytes(self.source) + COUNT_BYTES if self.events else 4 * self.source.width


def id_bytes(source: Source) -> int:
    """Bytes of an id: 16 bits as long as they suffice."""
    return 2 if source.width <= 1 << 16 else 4


def whole_words(ids: int, width: int) -> int:
    """Room for `ids` ids of a source of `width` values: an even number of 16-bit ids, as lists are moved in 32-bit words."""
    return ids + ids % 2 if width <= 1 << 16 else ids


def make_buses(
    network: Network, schedule: Schedule, activity: Mapping[str, float] | None, capacity: Mapping[str, int] | int | None
) -> tuple[tuple[Bus, ...], dict[str, str]]:
    """Return the buses (by source, then lag) and the bus of every connection; `activity` is what was measured."""
    keys = sorted(
        {(link.source, schedule.lags[link.id]) for link in network.links},
        key=lambda key: (network.sources.index(key[0]), key[1]),
    )
    buses = tuple(
        Bus(f"b{n}", source, lag, window_capacity(source, (activity or {}).get(source.buffer), capacity))
        for n, (source, lag) in enumerate(keys)
    )
    found = {(bus.source, bus.lag): bus.id for bus in buses}
    return buses, {link.id: found[link.source, schedule.lags[link.id]] for link in network.links}


def store_bytes(source: Source, buses: Sequence[Bus], steps: int, mode: Mode) -> int:
    """Bytes of one sample on a relay: its values or ids of all steps (one, of a static input) and the windows of its buses.

    Of spikes, mode "exact" keeps room for `width` ids a step, mode "drop" for the largest capacity.
    """
    mine = [bus for bus in buses if bus.source == source]
    slots = 1 if source.static else steps
    windows = sum(bus.window_bytes for bus in mine)
    if source.kind != "spikes":
        return slots * source.width * 4 + windows
    kept = whole_words(source.width if mode == "exact" else max(bus.capacity for bus in mine), source.width)
    return slots * (kept * id_bytes(source) + COUNT_BYTES) + windows
