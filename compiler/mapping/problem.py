"""All that is fixed before anything is placed: the network, its schedule and buses, the machine, the size of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from snnc.compiler.graph import Array
from snnc.compiler.mapping.buses import Bus, store_bytes
from snnc.compiler.mapping.cost import CodeletCost
from snnc.compiler.mapping.grouping import Floats
from snnc.compiler.mapping.links import Routes, find_routes
from snnc.compiler.mapping.network import Layer, Link, Network, Source
from snnc.compiler.mapping.schedule import Schedule
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
    rates: Mapping[str, Array] = field(default_factory=dict)
    """Spikes a step of every single value of a buffer, where that was measured."""

    def relative_rate(self, buffer: str) -> Floats | None:
        """Rate of each value of a buffer over their mean; None where it was not measured or nothing was sent."""
        rate = self.rates.get(buffer)
        mean = 0.0 if rate is None else float(rate.mean())
        return None if rate is None or mean == 0 else rate.astype(np.float64) / mean

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

    def window_events(self, link: Link) -> float:
        """Expected events of a sample in the first window that `link` reads."""
        return min(self.events(link.source), self.bus[self.bus_of[link.id]].capacity)

    def buses_into(self, layer: Layer) -> tuple[Bus, ...]:
        """Distinct buses that `layer` reads."""
        return tuple(self.bus[b] for b in dict.fromkeys(self.bus_of[link.id] for link in layer.incoming))

    def deltas_into(self, layer: Layer) -> tuple[tuple[str, int], ...]:
        """Distinct (population, port) whose deltas the source gradients of `layer` read."""
        return tuple(dict.fromkeys((link.target, link.port) for link in layer.outgoing if link.input_gradient))

    def whole_deltas_into(self, layer: Layer) -> tuple[tuple[str, int], ...]:
        """Those of which every tile of `layer` reads all."""
        return tuple(dict.fromkeys((link.target, link.port) for link in layer.outgoing if link.input_gradient and link.indexed is None))

    def ring_slots(self, source: Source) -> int:
        """Steps of output gradient that wait at once: ``1 + (largest lag - 1) // R``; 0 when no connection sends one back."""
        lags = [self.schedule.lags[link.id] for link in self.network.links if link.source == source and link.input_gradient]
        return 1 + (max(lags) - 1) // self.schedule.interval if lags else 0
