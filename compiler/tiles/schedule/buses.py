"""Buses of a network, sizes of their windows, and bytes stored by relays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from snnc.compiler.ir.plan import Mode
from snnc.compiler.tiles.mapped.network import BusSource, MappedNetwork
from snnc.compiler.tiles.schedule.capacity import gradient_capacity, window_capacity
from snnc.compiler.tiles.schedule.schedule import TileSchedule

COUNT_BYTES = 4


@dataclass(frozen=True)
class Bus:
    """All connections that read one source with the same lag, before its relays are placed."""

    id: str
    source: BusSource
    lag: int
    capacity: int
    gradient_capacity: int = 0
    """Entries per sample of a backward window, if gradients can return in windows; else 0."""

    @property
    def events(self) -> bool:
        """Whether it transports ids of spikes, not values."""
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
    """Return the space for `ids` ids of a source of `width` values: 16-bit ids are rounded up to even, as lists are copied in words."""
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

    By buffer, `activity` and `support` are the measured fractions of values that spike and of neurons that receive a gradient in a step.
    `capacity` and `gradients` are the user's capacities of forward windows and of gradient windows.
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


def store_bytes(
    source: BusSource,
    buses: Sequence[Bus],
    steps: int,
    mode: Mode,
    windowed: frozenset[str] = frozenset(),
    bits: Collection[BusSource] = (),
) -> int:
    """Return the bytes of one sample on a relay: its sequence, the ids that workers find in the masks of a step, and windows of its buses.

    `windowed` and `bits` as for :func:`sequence_bytes`.
    """
    return sum(store_lives(source, buses, steps, mode, windowed, bits).values())


def store_lives(
    source: BusSource,
    buses: Sequence[Bus],
    steps: int,
    mode: Mode,
    windowed: frozenset[str] = frozenset(),
    bits: Collection[BusSource] = (),
    fused: bool = False,
) -> dict[str, int]:
    """Return the bytes of :func:`store_bytes` by lifetime (:data:`snnc.compiler.tiles.memory.lifetimes.LIVES`)."""
    mine = [bus for bus in buses if bus.source == source]
    returning = [bus for bus in mine if bus.id in windowed]
    searched = 4 * source.width + 2 * COUNT_BYTES if source.kind == "spikes" and not source.external else 0
    return {
        "sequence": sequence_bytes(source, buses, steps, mode, windowed, bits),
        # If fused, relays search for the spikes of an iteration while the neurons compute the next one.
        "found ids": 0 if fused else searched,
        # In the backward pass, readers of a bus with gradient windows receive gradient windows instead of forward windows.
        "forward": fused * searched + sum(bus.window_bytes for bus in returning),
        "windows": sum(bus.window_bytes for bus in mine if bus.id not in windowed),
        "gradient windows": sum(bus.support_bytes for bus in returning),
        "returned windows": sum(bus.returned_bytes for bus in returning),
    }


def bit_words(width: int) -> int:
    """Return the number of 32-bit words of one bit for each of `width` values."""
    return -(-width // 32)


def sequence_bytes(
    source: BusSource,
    buses: Sequence[Bus],
    steps: int,
    mode: Mode,
    windowed: frozenset[str] = frozenset(),
    bits: Collection[BusSource] = (),
) -> int:
    """Return the bytes of one sample's values or spikes of all steps (one step for a static input).

    For an input, these are the bytes that the host streams. For spikes, relays store a list of ids per step: in mode "exact" up to `width`
    ids, in mode "drop" up to the largest capacity. For sources in `bits`, they store one bit per value instead. `windowed` are the buses
    over which gradients return in windows.
    """
    slots = 1 if source.static else steps
    if source.kind != "spikes":
        return slots * source.width * 4
    if source in bits:
        return slots * 4 * bit_words(source.width)
    support = any(bus.source == source and bus.id in windowed for bus in buses)
    return slots * (ids_stored(source, buses, mode, windowed) * id_bytes(source) + COUNT_BYTES * (2 if support else 1))


def ids_stored(source: BusSource, buses: Sequence[Bus], mode: Mode, windowed: Collection[str]) -> int:
    """Return the maximum number of ids that relays store in a step of `source`; `mode` and `windowed` as for :func:`sequence_bytes`."""
    mine = [bus for bus in buses if bus.source == source]
    support = [bus.gradient_capacity for bus in mine if bus.id in windowed]
    return whole_words(source.width if mode == "exact" else max([bus.capacity for bus in mine] + support), source.width)
