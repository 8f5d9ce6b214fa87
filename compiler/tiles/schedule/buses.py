"""Buses of a network, the capacities and sizes of their windows, and expected numbers of events.

A bus connects a source, through tiles called relays, with all tiles that read it a certain number of iterations later (the lag). It carries
the data of one step as a window: a list of ids of spikes with a fixed capacity (in ids per sample), or values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from snnc.compiler.tiles.errors import CapacityError
from snnc.compiler.tiles.mapped.network import BusSource, MappedNetwork
from snnc.compiler.tiles.schedule.schedule import TileSchedule

COUNT_BYTES: Final = 4
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
    `gradients` are the user's capacities of forward windows and of windows of the backward pass.
    """
    keys = sorted(
        {(link.source, schedule.lags[link.id]) for link in network.links}, key=lambda key: (network.sources.index(key[0]), key[1])
    )
    capacities = {s: window_capacity(s, (activity or {}).get(s.buffer), capacity) for s, _ in keys}
    entries = {s: gradient_capacity(s, capacities[s], (support or {}).get(s.buffer), gradients) for s, _ in keys}
    buses = tuple(Bus(f"b{n}", source, lag, capacities[source], entries[source]) for n, (source, lag) in enumerate(keys))
    bus_id = {(bus.source, bus.lag): bus.id for bus in buses}
    return buses, {link.id: bus_id[link.source, schedule.lags[link.id]] for link in network.links}


def bit_words(width: int) -> int:
    """Return the number of 32-bit words of one bit for each of `width` values."""
    return -(-width // 32)


ASSUMED_ACTIVITY: Final = 0.05
"""Assumed spikes per value and step without measurements."""
SUPPORT_RATIO: Final = 2.0
"""Assumed ratio of neurons that receive a gradient to neurons that spike, without measurements (in published runs with capacities of 10 %
of all neurons, the ratio was 1.5 to 1.9)."""
MARGIN: Final = 4.0
"""Margin above the mean, in standard deviations of a binomial count: about 3 in 100,000 counts are larger if neurons fire independently."""
GRAIN: Final = 4
"""Default capacities below the width are multiples of this number: four 16-bit ids fill a 64-bit load."""


def expected_support(network: MappedNetwork, measured: Mapping[str, float] | None, activity: Mapping[str, float]) -> dict[str, float]:
    """Return, for each source with a gradient window, the fraction of neurons that receive a gradient per step, at least the activity.

    Without a measurement in `measured`, it is :data:`SUPPORT_RATIO` times the activity. Sources with neither of the two are omitted.
    """
    for name, value in (measured or {}).items():
        if not 0 <= value <= 1:
            raise CapacityError(f"the share of {name!r} that receives a gradient is {value!r}; it must be a number between 0 and 1.")
    known = sorted(s.buffer for s in network.sources if s.windowed and s.buffer in {*activity, *(measured or {})})
    likely = {name: min(1.0, SUPPORT_RATIO * activity.get(name, 0.0)) for name in known} | dict(measured or {})
    return {name: max(float(likely[name]), activity.get(name, 0.0)) for name in known}


def expected_activity(network: MappedNetwork, measured: Mapping[str, float] | None) -> dict[str, float]:
    """Return the mean number of spikes per value and step of each source of spikes, from `measured` or else :data:`ASSUMED_ACTIVITY`."""
    known = {s.buffer for s in network.sources if s.kind == "spikes"}
    for name, value in (measured or {}).items():
        if not 0 <= value <= 1:
            raise CapacityError(f"the activity of {name!r} is {value!r}; it must be spikes per value and step, between 0 and 1.")
    return {name: float((measured or {}).get(name, ASSUMED_ACTIVITY)) for name in sorted(known)}


def window_capacity(source: BusSource, activity: float | None, requested: Mapping[str, int] | int | None) -> int:
    """Return the number of events per sample that fit into one window of `source`.

    For a source of values, this is its width. For a source of spikes, it is the user's number in `requested`, if there is one. Otherwise it
    is the mean number of spikes by the measured activity, plus :data:`MARGIN` standard deviations of ``width`` independent values, plus 1,
    rounded up to a multiple of :data:`GRAIN`, but at most the width. Without measurements, it is the width, so that windows never overflow.
    """
    if source.kind != "spikes":
        return source.width
    chosen = requested.get(source.buffer) if isinstance(requested, Mapping) else requested
    if chosen is not None:
        if chosen < 1:
            raise CapacityError(f"the capacity of {source.buffer!r} is {chosen}; a window needs at least 1 event.")
        return min(int(chosen), source.width)
    return source.width if activity is None else _default_capacity(source, activity)


def gradient_capacity(source: BusSource, capacity: int, support: float | None, requested: Mapping[str, int] | int | None) -> int:
    """Return the maximum number of entries per sample of a backward window: spikes, and neurons near the threshold.

    It is 0 for a source without a gradient window. Otherwise it is computed as in :func:`window_capacity`, from the fraction `support` of
    neurons that receive a gradient, and is at least `capacity`, that of a forward window.
    """
    if not source.windowed:
        return 0
    chosen = requested.get(source.buffer) if isinstance(requested, Mapping) else requested
    if chosen is not None and chosen < 1:
        raise CapacityError(f"the gradient capacity of {source.buffer!r} is {chosen}; a window needs at least 1 entry.")
    entries = chosen if chosen is not None else source.width if support is None else _default_capacity(source, support)
    return min(max(int(entries), capacity), source.width)


def _default_capacity(source: BusSource, share: float) -> int:
    mean = source.width * share
    bound = math.ceil(mean + MARGIN * math.sqrt(mean * (1 - share)) + 1)
    return min(source.width, GRAIN * math.ceil(bound / GRAIN))


def check_names(network: MappedNetwork, *by_buffer: Mapping[str, object] | int | None) -> None:
    """Check that all names in `by_buffer` (activities and capacities) are those of buffers that send spikes."""
    known = sorted(s.buffer for s in network.sources if s.kind == "spikes")
    for mapping in by_buffer:
        for name in mapping if isinstance(mapping, Mapping) else ():
            if name not in known:
                raise CapacityError(f"{name!r} is not a buffer that sends spikes; these are {', '.join(known) or 'none'}.")
