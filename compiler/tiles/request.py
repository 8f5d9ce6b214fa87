"""The request for a mapping, and the problems that follow from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.plan import Mode, Recompute, Streaming
from snnc.compiler.ir.segments import Streamed
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.network import BusSource, MappedNetwork
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.buses import make_buses
from snnc.compiler.tiles.schedule.capacity import expected_activity, expected_near
from snnc.compiler.tiles.schedule.recompute import segment_lengths
from snnc.compiler.tiles.schedule.schedule import TileSchedule
from snnc.compiler.tiles.vertices.codelet_costs import network_costs

if TYPE_CHECKING:
    from snnc.compiler.tiles.placement.search import Search

Gradients: TypeAlias = Literal["auto", "dense", "windowed"]


@dataclass(frozen=True, eq=False)
class MappingRequest:
    """The arguments of :func:`snnc.compiler.tiles.make_plan`, with the network and its schedule."""

    network: MappedNetwork
    schedule: TileSchedule
    target: Target
    steps: int
    batch: int
    mode: Mode
    activity: Mapping[str, float] | None
    capacity: Mapping[str, int] | int | None
    chips: int | None
    near: Mapping[str, float] | None = None
    gradient_capacity: Mapping[str, int] | int | None = None
    gradients: Gradients = "auto"
    rates: Mapping[str, Array] = field(default_factory=dict)
    counts: Mapping[str, Array] = field(default_factory=dict)
    near_counts: Mapping[str, Array] = field(default_factory=dict)
    patterns: Mapping[str, Array] = field(default_factory=dict)
    recompute: Recompute = "auto"
    streaming: Streaming = "auto"
    segment: int = 0
    """Iterations of a segment that is tried because nothing fits otherwise; 0: as in `recompute`."""
    streamed: Streamed | None = None
    """The data then kept outside the tiles; None: as in `streaming`, nothing if that is "auto"."""
    fused: bool | None = None
    dealt: Collection[str] | None = None
    packed: bool | None = None
    """Whether rows of weights are packed; None: where nothing fits without."""
    looked: tuple[Search, ...] = ()
    """Searches of a quick estimate of the same program."""

    def problems(self) -> Iterator[MappingProblem]:
        """One problem for each way to size the windows, and for each way in which gradients return to sources of spikes.

        Small windows, by the measured activity, save bytes but cost a test for further ones in every iteration; so windows that hold
        everything are tried as well. The user's own numbers are kept.
        """
        costs, expected = network_costs(self.network, self.dealt or ()), expected_activity(self.network, self.activity)
        likely = expected_near(self.network, self.near, expected)
        for windowed in self._windowed():
            for spikes, near in self._sizes(bool(windowed)):
                buses, bus_of = make_buses(self.network, self.schedule, spikes, self.capacity, near, self.gradient_capacity)
                yield MappingProblem(
                    self.network,
                    self.schedule,
                    buses,
                    bus_of,
                    costs,
                    expected,
                    self.target,
                    self.steps,
                    self.batch,
                    self.mode,
                    likely,
                    windowed,
                    self.rates,
                    self.counts,
                    self.near_counts,
                    self.patterns,
                    self._segment(),
                    streamed=self._streamed(),
                    dealt=frozenset(self.dealt or ()),
                    packed=bool(self.packed),
                )

    def _segment(self) -> int:
        """Iterations of a segment; 0 without a backward pass, or without a second segment."""
        length = self.segment or (self.recompute if isinstance(self.recompute, int) else 0)
        return length if self.network.training and length < self.schedule.iterations(self.steps) else 0

    def _streamed(self) -> Streamed:
        """The data kept outside the tiles; none without segments."""
        if not self._segment():
            return "off"
        return self.streamed or ("off" if self.streaming == "auto" else self.streaming)

    def ways(self) -> tuple[Streamed, ...]:
        """The data that segmented sequences may keep outside the tiles, if nothing fits otherwise, the least first.

        Histories need no recompute; data in streaming memory needs a machine that defines its rate.
        """
        told, some = self.target.streaming is not None, any(not source.static for source in self.network.inputs)
        able: dict[Streamed, bool] = {
            "off": self.recompute != "off",
            "inputs": self.recompute != "off" and some,
            "boundaries": self.recompute != "off" and told,
            "history": told,
        }
        return tuple(way for way, may in able.items() if may and self.network.training and self.streaming in ("auto", way))

    def lengths(self, way: Streamed) -> tuple[int, ...]:
        """Lengths of segments to try if nothing fits without segments, the longest first."""
        if self.segment:
            return ()
        if isinstance(self.recompute, int):
            return (self.recompute,) if way != self._streamed() and self._segment() else ()
        return segment_lengths(self.network, self.schedule, self.steps, way)

    def _windowed(self) -> tuple[frozenset[BusSource], ...]:
        """Sets of sources whose gradients return in windows: none, and all possible ones."""
        none, able = frozenset[BusSource](), self.network.windowed
        return tuple(dict.fromkeys({"dense": (none,), "windowed": (able,), "auto": (none, able)}[self.gradients]))

    def _sizes(self, windowed: bool) -> Iterator[tuple[Mapping[str, float] | None, Mapping[str, float] | None]]:
        """Given spikes, and neurons that take gradient, to size windows by; None for windows that hold everything."""
        near = expected_near(self.network, self.near, self.activity or {}) or None if windowed else None
        if not self.activity or self.mode != "exact":
            yield self.activity, near
            return
        for entries in (near, None) if near and self.gradient_capacity is None else (near,):
            for spikes in (self.activity, None) if self.capacity is None else (self.activity,):
                yield spikes, entries
