"""The mapping problem, which placements are made for: a network with its schedule and buses, the machine, and the size of a run.

A bus connects a source, through tiles called relays, with all tiles that read it a certain number of iterations later (the lag). It carries
the data of one step as a window: a list of ids of spikes with a fixed capacity, or values. docs/reference/terms.md has the other terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from snnc.compiler.ir.plan import Mode
from snnc.compiler.ir.segments import Segments, Streamed
from snnc.compiler.machines.chip_links import Routes, find_routes
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, sample_groups
from snnc.compiler.tiles.mapped.network import BusSource, Layer, Link, MappedNetwork
from snnc.compiler.tiles.memo import Memo
from snnc.compiler.tiles.schedule.buses import COUNT_BYTES, Bus, bit_words, id_bytes, whole_words
from snnc.compiler.tiles.schedule.further_windows import FurtherWindows, WindowSizes, request_length
from snnc.compiler.tiles.schedule.schedule import TileSchedule
from snnc.compiler.tiles.schedule.timeline import EventTimeline
from snnc.compiler.tiles.vertices.cost import CodeletCost

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class MappingProblem:
    """Input of placement, and of the prediction of memory and cycles."""

    network: MappedNetwork
    schedule: TileSchedule
    buses: tuple[Bus, ...]
    bus_of: Mapping[str, str]
    """Bus id of each connection, by connection id."""
    costs: Mapping[str, CodeletCost]
    """Costs of the codelets, by name (:func:`snnc.compiler.tiles.vertices.codelet_costs.codelet_costs`)."""
    activity: Activity
    """Expected activity of all sources of spikes, with the measurements."""
    target: Target
    steps: int
    batch: int
    mode: Mode
    windowed: frozenset[BusSource] = frozenset()
    """Sources whose gradient returns only for neurons that spiked or are near the threshold."""
    segment: int = 0
    """Iterations of a segment; 0 without segments. See :class:`snnc.compiler.ir.plan.Plan`."""
    bits: frozenset[BusSource] = frozenset()
    """Sources of spikes for which relays store a bit for each value and step instead of ids."""
    streamed: Streamed = "off"
    packed: bool = False
    """Whether targets pack rows of weights before they send them to sources, where packing saves pieces."""
    fused: TileSchedule | None = None
    """Schedule of a forward pass whose relays and neurons share a superstep; None if they have separate supersteps."""

    value_memo: Memo = field(default_factory=Memo)
    """Memo table of the drawn or measured spikes of single neurons, and of results from them that depend neither on the schedule nor on the
    kind of gradients. Copies of the problem share it."""

    @cached_property
    def forward(self) -> MappingProblem:
        """The problem with the schedule of the forward pass, which differs from :attr:`schedule` if `fused` is set."""
        fused = self.fused
        if fused is None:
            return self
        lags = {self.bus_of[link.id]: fused.lags[link.id] for link in self.network.links}
        return replace(self, schedule=fused, fused=None, buses=tuple(replace(bus, lag=lags[bus.id]) for bus in self.buses))

    @cached_property
    def segments(self) -> Segments:
        """The division of the iterations into segments."""
        iterations = self.schedule.iterations(self.steps)
        return Segments(self.steps, self.schedule.interval, iterations, self.segment, self.streamed)

    @cached_property
    def memo(self) -> Memo:
        """Memo table for the layouts of this problem."""
        return Memo()

    @cached_property
    def timeline(self) -> EventTimeline:
        """Numbers of events in every iteration."""
        return EventTimeline(self)

    def relative_rate(self, buffer: str) -> Floats | None:
        """Return the rate of each value of a buffer, divided by the mean rate; None if rates were not measured or all are 0."""
        rate = self.activity.rates.get(buffer)
        mean = 0.0 if rate is None else float(rate.mean())
        return None if rate is None or mean == 0 else rate.astype(np.float64) / mean

    def returns(self, link: Link) -> bool:
        """Return whether the target of `link` sends the gradient of the source back in windows."""
        return link.source in self.windowed and link.input_gradient and link.dense

    def copies(self, link: Link) -> bool:
        """Return whether the source of `link` stores a copy of the weights, and computes its gradient from the deltas."""
        return link.input_gradient and not self.returns(link)

    @property
    def training(self) -> bool:
        """Whether the backward pass and the update run."""
        return self.network.training

    @property
    def loss_parts(self) -> int:
        """Number of parts in which a sample's loss is computed: one per worker if the loss reads every step, otherwise 1."""
        return self.target.workers if self.network.loss.reads_steps else 1

    def request_length(self, bus: Bus) -> int:
        """Return how many counts a relay sends as its request for further windows of `bus`."""
        return request_length(self.target.workers, bits=bus.source in self.bits, external=bus.source.external, lag=bus.lag)

    @cached_property
    def further(self) -> FurtherWindows:
        """Sizes of the windows of all buses, and from them the buses with further windows."""
        exact = self.mode == "exact"
        sizes = {
            b.id: WindowSizes(b.source.width, b.events, exact, b.capacity, b.gradient_capacity if b.id in self.returned else None)
            for b in self.buses
        }
        return FurtherWindows(sizes, self.training)

    @cached_property
    def requesting_buses(self) -> tuple[Bus, ...]:
        """Buses whose relays request further windows."""
        return tuple(bus for bus in self.buses if bus.id in self.further.requesting)

    @cached_property
    def routes(self) -> Routes:
        """The routes between chips."""
        return find_routes(self.target)

    @cached_property
    def bus(self) -> Mapping[str, Bus]:
        """Buses by id."""
        return {bus.id: bus for bus in self.buses}

    @cached_property
    def store_sizes(self) -> Mapping[BusSource, int]:
        """Bytes per sample on a relay, by source, summed over lifetimes."""
        return {source: sum(lives.values()) for source, lives in self.store_lives.items()}

    @cached_property
    def store_lives(self) -> Mapping[BusSource, Mapping[str, int]]:
        """Bytes per sample on a relay, by source and lifetime."""
        return {source: self.sizes_between_programs(self._store_lives(source)) for source in self.network.sources}

    def _store_lives(self, source: BusSource) -> dict[str, int]:
        buses = self.buses_of(source)
        returning = [bus for bus in buses if bus.id in self.returned]
        searched = 4 * source.width + 2 * COUNT_BYTES if source.kind == "spikes" and not source.external else 0
        return {
            "sequence": self.sequence_bytes(source, self.steps_stored(source)),
            # If fused, relays search for the spikes of an iteration while the neurons compute the next one.
            "found ids": 0 if self.fused is not None else searched,
            # In the backward pass, readers of a bus with windowed gradients receive backward windows instead of forward windows.
            "forward": (searched if self.fused is not None else 0) + sum(bus.window_bytes for bus in returning),
            "windows": sum(bus.window_bytes for bus in buses if bus.id not in self.returned),
            "gradient windows": sum(bus.support_bytes for bus in returning),
            "returned windows": sum(bus.returned_bytes for bus in returning),
        }

    def sequence_bytes(self, source: BusSource, steps: int, *, bits: bool | None = None) -> int:
        """Return the bytes of one sample's values or spikes of `steps` steps (one step for a static input).

        Spikes are stored as one bit per value if `bits` is True, or as a list of ids per step if it is False; None: as the relays of
        `source` store them.
        """
        slots = 1 if source.static else steps
        if source.kind != "spikes":
            return slots * source.width * 4
        if source in self.bits if bits is None else bits:
            return slots * 4 * bit_words(source.width)
        counts = 2 if any(bus.id in self.returned for bus in self.buses_of(source)) else 1
        return slots * (self.ids_stored(source) * id_bytes(source) + COUNT_BYTES * counts)

    def ids_stored(self, source: BusSource) -> int:
        """Return the maximum number of ids that relays store in a step: all neurons in mode "exact", otherwise the largest capacity."""
        buses = self.buses_of(source)
        support = [bus.gradient_capacity for bus in buses if bus.id in self.returned]
        return whole_words(source.width if self.mode == "exact" else max([bus.capacity for bus in buses] + support), source.width)

    @property
    def repeats_forward(self) -> bool:
        """Whether each additional backward pass for batch normalisations follows an additional forward pass."""
        return self.network.extra_passes > 0 and (self.segment > 0 or self.network.whole_passes)

    @property
    def lives_between_programs(self) -> tuple[str, ...]:
        """Lifetimes of data that one program writes and another one reads."""
        if self.network.external:  # a caller computes the loss
            return ("sequence",)
        return ("sequence", "record adjoints") if self.network.extra_passes and not self.repeats_forward else ()

    def sizes_between_programs(self, lives: Mapping[str, Any]) -> dict[str, Any]:
        """Return sizes by lifetime; data that one program writes and another one reads get the lifetime "always".

        The forward and the backward pass are separate programs if a caller computes the loss, or if the backward pass is repeated.
        """
        sizes: dict[str, Any] = {}
        for life, size in lives.items():
            lifetime = "always" if life in self.lives_between_programs else life
            sizes[lifetime] = sizes[lifetime] + size if lifetime in sizes else size
        return sizes

    def steps_stored(self, source: BusSource) -> int:
        """Return the number of steps that a relay stores: all or those of a segment; for a population, also steps saved at boundaries."""
        lag = self.largest_lag(source)
        if source.external:
            return self.segments.steps_streamed(min(bus.lag for bus in self.buses_of(source)), lag)
        return self.segments.steps_relayed(lag) + self.segments.boundaries_with_steps * self.segments.steps_before(lag)

    @cached_property
    def sources_at_boundaries(self) -> tuple[BusSource, ...]:
        """Sources whose relays save steps at boundaries."""
        inner = [source for source in self.network.sources if not source.external]
        return tuple(source for source in inner if self.segments.steps_before(self.largest_lag(source)))

    def largest_lag(self, source: BusSource) -> int:
        """Return the largest lag of the buses of a source, in iterations."""
        return max(bus.lag for bus in self.buses_of(source))

    @cached_property
    def returned(self) -> Mapping[str, tuple[Link, ...]]:
        """Links whose targets send gradients back in windows, by the id of the bus that they read."""
        return _grouped((self.bus_of[link.id], link) for link in self.network.links if self.returns(link))

    def returned_buses(self, layer: Layer) -> tuple[Bus, ...]:
        """Return the buses over which gradients return to `layer` in windows."""
        return tuple(self.bus[b] for b in dict.fromkeys(self.bus_of[link.id] for link in layer.outgoing if self.returns(link)))

    def backward_bytes(self, bus: Bus) -> int:
        """Return the bytes of one sample's window that readers of `bus` receive in the backward pass."""
        return bus.support_bytes if bus.id in self.returned else bus.window_bytes

    @cached_property
    def by_id(self) -> Mapping[str, Layer]:
        """Layers by id."""
        return {layer.id: layer for layer in self.network.layers}

    def bus_into(self, link: Link) -> Bus:
        """Return the bus that `link` reads."""
        return self.bus[self.bus_of[link.id]]

    def buses_of(self, source: BusSource) -> tuple[Bus, ...]:
        """Return the buses that carry a source, one for each lag."""
        return self._buses_by_buffer.get(source.buffer, ())

    @cached_property
    def _buses_by_buffer(self) -> Mapping[str, tuple[Bus, ...]]:
        return _grouped((bus.source.buffer, bus) for bus in self.buses)

    def readers(self, bus: Bus, *, backward: bool) -> tuple[Layer, ...]:
        """Return the layers that read a bus, in order; with `backward`, the layers that read its windows again for a gradient."""
        return self._readers.get((bus.id, backward), ())

    @cached_property
    def _readers(self) -> Mapping[tuple[str, bool], tuple[Layer, ...]]:
        links = [(layer, link, back) for layer in self.network.layers for link in layer.incoming for back in (False, True)]
        read = [(self.bus_of[link.id], back, layer) for layer, link, back in links if link.read_backward or self.returns(link) or not back]
        return _grouped(((bus, back), layer) for bus, back, layer in dict.fromkeys(read))

    def limited(self, *, backward: bool = False) -> tuple[Bus, ...]:
        """Return the buses whose events may need further windows."""
        return tuple(bus for bus in self.buses if self.further.sizes[bus.id].limited(backward=backward))

    def events(self, source: BusSource) -> float:
        """Return the expected number of events per sample and step."""
        return source.width * self.activity.mean.get(source.buffer, 0.0)

    @cached_property
    def support_events(self) -> Mapping[str, float]:
        """Expected number of entries of a sample in the first window of the backward pass, by bus id."""
        return {b: float(self.timeline.entries(self.bus[b]).mean()) for b in self.returned}

    @cached_property
    def _window_events(self) -> Mapping[str, float]:
        stored = self.timeline.stored
        return {
            b.id: self.events(b.source) if b.capacity >= b.source.width else float(np.minimum(stored(b), b.capacity).mean())
            for b in self.buses
            if b.events
        }

    def window_events(self, link: Link) -> float:
        """Return the expected number of events of a sample in the first window that `link` reads; 0 for a link of values."""
        return self._window_events.get(self.bus_of[link.id], 0.0)

    def further_windows(self, *, backward: bool = False) -> float:
        """Return the expected number of further windows of a sequence in one of the two passes."""
        return self.timeline.further(backward=backward) if self.limited(backward=backward) else 0.0

    def buses_into(self, layer: Layer) -> tuple[Bus, ...]:
        """Return the distinct buses that `layer` reads."""
        return tuple(self.bus[b] for b in dict.fromkeys(self.bus_of[link.id] for link in layer.incoming))

    def deltas_into(self, layer: Layer) -> tuple[tuple[str, int], ...]:
        """Return the distinct (population, port) whose deltas the source gradients of `layer` read."""
        return tuple(dict.fromkeys((link.target, link.port) for link in layer.outgoing if self.copies(link)))

    def whole_deltas_into(self, layer: Layer) -> tuple[tuple[str, int], ...]:
        """Return the distinct (population, port) whose deltas every tile of `layer` reads completely."""
        return tuple(dict.fromkeys((link.target, link.port) for link in layer.outgoing if self.copies(link) and link.indexed is None))

    def sample_groups(self, neurons: Any, limit: Any, samples: Any) -> Ints:
        """Return the number of sample groups per column group; see :func:`~snnc.compiler.tiles.blocks.grouping.sample_groups`."""
        return sample_groups(neurons, limit, self.target.workers, samples, pairs=self.network.half_deltas)

    def delta_bytes(self, target: str, port: int) -> int:
        """Return the bytes of a delta of the current `port` of the population `target`, as its sources read it."""
        return next(link.delta_bytes for link in self.by_id[target].incoming if link.port == port and self.copies(link))

    @cached_property
    def ring_slots(self) -> Mapping[str, int]:
        """Number of steps whose output gradients are stored at once, ``1 + (largest lag - 1) // interval``, by buffer with gradients."""
        lags = _grouped((link.source.buffer, self.schedule.lags[link.id]) for link in self.network.links if link.input_gradient)
        return {buffer: 1 + (max(of_buffer) - 1) // self.schedule.interval for buffer, of_buffer in lags.items()}


def _grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, tuple[Value, ...]]:
    groups: dict[Key, tuple[Value, ...]] = {}
    for key, value in pairs:
        groups[key] = (*groups.get(key, ()), value)
    return groups
