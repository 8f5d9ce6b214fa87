"""All that is fixed before anything is placed: the network, its schedule and buses, the machine, the size of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from snnc.compiler.mapping.buses import Bus, store_bytes
from snnc.compiler.mapping.cost import CodeletCost
from snnc.compiler.mapping.further import events_of_window, expected_rounds, probability_below
from snnc.compiler.mapping.links import Routes, find_routes
from snnc.compiler.mapping.network import Layer, Link, Network, Source
from snnc.compiler.mapping.schedule import INPUT_STAGE, Schedule
from snnc.compiler.plan import Mode
from snnc.compiler.target import Target


@dataclass(frozen=True, eq=False)
class Problem:
    """Input of placement, memory and prediction."""

    network: Network
    schedule: Schedule
    buses: tuple[Bus, ...]
    bus_of: Mapping[str, str]
    """Connection id to bus id."""
    costs: Mapping[str, CodeletCost]
    activity: Mapping[str, float]
    target: Target
    steps: int
    batch: int
    mode: Mode

    @property
    def training(self) -> bool:
        """Whether backward and update run."""
        return self.network.training

    @cached_property
    def routes(self) -> Routes:
        """The ways between chips."""
        return find_routes(self.target)

    @cached_property
    def bus(self) -> Mapping[str, Bus]:
        """Buses by id."""
        return {bus.id: bus for bus in self.buses}

    @cached_property
    def store_sizes(self) -> Mapping[Source, int]:
        """Bytes a sample on a relay, by source."""
        return {s: store_bytes(s, self.buses, self.steps, self.mode) for s in self.network.sources}

    @cached_property
    def by_id(self) -> Mapping[str, Layer]:
        """Layers by id."""
        return {layer.id: layer for layer in self.network.layers}

    @property
    def limited(self) -> tuple[Bus, ...]:
        """Buses whose windows may overflow and are then followed by further ones."""
        return tuple(b for b in self.buses if b.events and b.capacity < b.source.width) if self.mode == "exact" else ()

    def events(self, source: Source) -> float:
        """Expected events of a sample and step."""
        return source.width * self.activity.get(source.buffer, 0.0)

    def event_variance(self, source: Source) -> float:
        """Variance of the events of a sample and step: each value fires on its own."""
        rate = self.activity.get(source.buffer, 0.0)
        return source.width * rate * (1.0 - rate)

    def window_events(self, link: Link, window: int = 0) -> float:
        """Expected events of a sample in one window that `link` reads, the first being 0."""
        bus, mean, variance = self.bus[self.bus_of[link.id]], self.events(link.source), self.event_variance(link.source)
        if bus.capacity >= bus.source.width:
            return mean
        return events_of_window(mean, variance, bus.capacity, window if self.mode == "exact" else 0)

    @cached_property
    def rounds(self) -> float:
        """Expected further windows of a step that shows some limited bus."""
        return self.further_windows / (self.steps * len(self._shown_together)) if self.limited else 0.0

    @cached_property
    def further_windows(self) -> float:
        """Expected further windows of a sequence in one direction."""
        found = 0.0
        for buses in self._shown_together.values():
            limited = [(self.events(b.source), self.event_variance(b.source), b.capacity, b.source.width) for b in buses]
            found += self.steps * expected_rounds(limited, self.batch)
        return found

    @cached_property
    def _shown_together(self) -> Mapping[int, list[Bus]]:
        """Limited buses by the iterations, modulo the interval, in which they show a step."""
        found: dict[int, list[Bus]] = {}
        for bus in self.limited:
            first = self.schedule.stages.get(bus.source.owner, INPUT_STAGE) + bus.lag
            found.setdefault(first % self.schedule.interval, []).append(bus)
        return found

    def window_variance(self, link: Link) -> float:
        """Variance of the events of a sample in the first window that `link` reads; a full window does not vary."""
        bus, variance = self.bus[self.bus_of[link.id]], self.event_variance(link.source)
        return variance * probability_below(self.events(link.source), variance, bus.capacity, bus.source.width)

    def buses_into(self, layer: Layer) -> tuple[Bus, ...]:
        """Distinct buses that `layer` reads."""
        return tuple(self.bus[b] for b in dict.fromkeys(self.bus_of[link.id] for link in layer.incoming))

    def deltas_into(self, layer: Layer) -> tuple[tuple[str, int], ...]:
        """Distinct (population, port) whose deltas the source gradients of `layer` read."""
        return tuple(dict.fromkeys((link.target, link.port) for link in layer.outgoing if link.input_gradient))

    def ring_slots(self, source: Source) -> int:
        """Steps of output gradient that wait at once: ``1 + (largest lag - 1) // R``; 0 when no connection sends one back."""
        lags = [self.schedule.lags[link.id] for link in self.network.links if link.source == source and link.input_gradient]
        return 1 + (max(lags) - 1) // self.schedule.interval if lags else 0
