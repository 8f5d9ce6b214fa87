"""Mapping requests, which contain all that a caller asks of a plan; their checks, and the mapping problems that a search tries for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import Mode, Recompute, Streaming
from snnc.compiler.ir.segments import Streamed
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.errors import MappingOptionError, OutputsTooBigError
from snnc.compiler.tiles.mapped.network import BusSource, MappedNetwork
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import expected_activity, expected_support, make_buses
from snnc.compiler.tiles.schedule.recompute import segment_lengths
from snnc.compiler.tiles.schedule.schedule import TileSchedule
from snnc.compiler.tiles.vertices.codelet_costs import network_costs

if TYPE_CHECKING:
    from snnc.compiler.tiles.search.search import Search

Gradients: TypeAlias = Literal["auto", "dense", "windowed"]
"""How gradients return to sources of spikes; see :func:`snnc.compiler.tiles.make_plan`."""


@dataclass(frozen=True, eq=False)
class MappingRequest:
    """The arguments of :func:`snnc.compiler.tiles.make_plan`, with the network and its schedule."""

    network: MappedNetwork
    schedule: TileSchedule
    target: Target
    steps: int
    batch: int
    mode: Mode
    activity: Activity
    capacity: Mapping[str, int] | int | None
    chips: int | None
    gradient_capacity: Mapping[str, int] | int | None = None
    gradients: Gradients = "auto"
    recompute: Recompute = "auto"
    streaming: Streaming = "auto"
    segment: int = 0
    """Number of iterations of a segment; 0: the number in `recompute`, or no segments if `recompute` is a keyword."""
    streamed: Streamed | None = None
    """Data stored outside the tiles if there are segments; None: those that `streaming` names, or none if `streaming` is "auto"."""
    fused: bool | None = None
    """Whether relays search for spikes of one iteration while neurons compute the next; None: if that is predicted to be faster."""
    packed: bool | None = None
    """Whether rows of weights are packed; None: only if nothing fits without packing."""
    estimated: tuple[Search, ...] = ()
    """Searches of a quick estimate of the same program; the search for a plan uses their results."""

    def problems(self) -> Iterator[MappingProblem]:
        """Yield one problem for each way to size the windows and each way to return gradients to sources of spikes.

        Small windows, sized by the measured activity, save bytes but need a test for further windows in every iteration, so full windows
        are tried as well. Capacities set by the user stay unchanged.
        """
        costs, mean = network_costs(self.network), expected_activity(self.network, self.activity.mean)
        expected = replace(self.activity, mean=mean, support=expected_support(self.network, self.activity.support, mean))
        sizes = self.target, self.steps, self.batch, self.mode
        for windowed in self._windowed():
            for spikes, support in self._sizes(bool(windowed)):
                buses, bus_of = make_buses(self.network, self.schedule, spikes, self.capacity, support, self.gradient_capacity)
                leading = (self.network, self.schedule, buses, bus_of, costs, expected, *sizes, windowed, self._segment())
                yield MappingProblem(*leading, streamed=self._streamed(), packed=bool(self.packed))

    def _segment(self) -> int:
        """Return the number of iterations of a segment; 0 without a backward pass, or if one segment would contain all iterations."""
        length = self.segment or (self.recompute if isinstance(self.recompute, int) else 0)
        return length if self.network.training and length < self.schedule.iterations(self.steps) else 0

    def _streamed(self) -> Streamed:
        if not self._segment():
            return "off"
        return self.streamed or ("off" if self.streaming == "auto" else self.streaming)

    def streaming_choices(self) -> tuple[Streamed, ...]:
        """Return the sets of data that may be stored outside the tiles if nothing fits otherwise, the smallest first ("off" is empty).

        Histories may be stored even if `recompute` is "off". Boundaries and histories need a machine with streaming memory.
        """
        has_streaming, has_inputs = self.target.streaming is not None, any(not source.static for source in self.network.inputs)
        possible: dict[Streamed, bool] = {
            "off": self.recompute != "off",
            "inputs": self.recompute != "off" and has_inputs,
            "boundaries": self.recompute != "off" and has_streaming,
            "history": has_streaming,
        }
        return tuple(data for data, may in possible.items() if may and self.network.training and self.streaming in ("auto", data))

    def lengths(self, streamed: Streamed) -> tuple[int, ...]:
        """Return the lengths of segments to try with `streamed`, the longest first; none if the request already defines segments."""
        if self.segment:
            return ()
        if isinstance(self.recompute, int):
            return (self.recompute,) if streamed != self._streamed() and self._segment() else ()
        return segment_lengths(self.network, self.schedule, self.steps, streamed)

    def _windowed(self) -> tuple[frozenset[BusSource], ...]:
        """Return the sets of sources whose gradients return in windows: none, and all sources whose gradients can."""
        none, possible = frozenset[BusSource](), self.network.windowed
        return tuple(dict.fromkeys({"dense": (none,), "windowed": (possible,), "auto": (none, possible)}[self.gradients]))

    def _sizes(self, windowed: bool) -> Iterator[tuple[Mapping[str, float] | None, Mapping[str, float] | None]]:
        """Yield pairs of activities (spikes, and neurons that receive a gradient) that determine window sizes; None: full windows."""
        mean = self.activity.mean
        support = expected_support(self.network, self.activity.support, mean) or None if windowed else None
        if not mean or self.mode != "exact":
            yield mean, support
            return
        for entries in (support, None) if support and self.gradient_capacity is None else (support,):
            for spikes in (mean, None) if self.capacity is None else (mean,):
                yield spikes, entries


MAX_OUTPUTS_FACTOR: Final = 4
"""Requests whose outputs need more than this multiple of the memory are rejected without a search for remedies."""


def check_options(
    target: Target, *, steps: int, batch: int, chips: int | None, mode: str, gradients: str, recompute: object, streaming: str
) -> None:
    """Raise a MappingOptionError for a number out of range, an unknown keyword, or streaming memory that the target lacks."""
    for name, value in (("steps", steps), ("batch", batch)):
        if value < 1:
            raise MappingOptionError(f"{name} is {value}; it must be 1 or more.")
    if chips is not None and not 1 <= chips <= target.chips:
        raise MappingOptionError(f"chips is {chips}; the target {target.name} has 1 to {target.chips}.")
    if mode not in ("exact", "drop"):
        raise MappingOptionError(f"mode is {mode!r}; it must be 'exact' or 'drop'.")
    if gradients not in ("auto", "dense", "windowed"):
        raise MappingOptionError(f"gradients is {gradients!r}; it must be 'auto', 'dense' or 'windowed'.")
    if recompute not in ("auto", "off") and (isinstance(recompute, bool) or not isinstance(recompute, int) or recompute < 1):
        raise MappingOptionError(f"recompute is {recompute!r}; it must be 'auto', 'off', or the number of iterations in a segment (>= 1).")

    known = ("auto", "off", "inputs", "boundaries", "history")
    if streaming not in known:
        raise MappingOptionError(f"streaming is {streaming!r}; it must be {', '.join(known[:-1])} or {known[-1]}.")
    if streaming in ("boundaries", "history") and target.streaming is None:
        raise MappingOptionError(
            f"streaming is {streaming!r}, but the target {target.name} defines no streaming memory; add a section [streaming] to its file."
        )


def check_length(network: MappedNetwork, target: Target, steps: int, batch: int) -> None:
    """Check the memory for the outputs of a sequence before the search, whose time grows with the numbers of steps and samples.

    Raises
    ------
    OutputsTooBigError
        The outputs of one neuron for one sample need more than MAX_OUTPUTS_FACTOR times the memory of a tile, or all outputs need more than
        this multiple of the memory of all tiles.
    """
    widest = max(network.layers, key=lambda layer: layer.records, default=None)
    if widest is None or not widest.records:
        return
    needed, room = FLOAT * steps * widest.records, target.tile_bytes
    text = (
        f"{steps:,} steps do not fit on {target.name}: all steps of the outputs of one neuron of layer {widest.label!r}, "
        f"for one sample, take {needed:,} bytes on one tile, which has {room:,}. "
        f"At most {room // (FLOAT * widest.records):,} steps fit; run shorter sequences one after the other."
    )
    if needed <= MAX_OUTPUTS_FACTOR * room:
        needed = FLOAT * steps * batch * sum(layer.neurons * layer.records for layer in network.layers)
        room = target.tile_bytes * target.tiles
        text = (
            f"{batch:,} samples of {steps:,} steps do not fit on {target.name}: their outputs alone take {needed:,} bytes, and its "
            f"{target.tiles:,} tiles have {room:,}. Use at most {max(1, batch * room // needed):,} samples at once, or shorter sequences."
        )
    if needed > MAX_OUTPUTS_FACTOR * room:
        raise OutputsTooBigError(text, needed=needed, available=room, layer=widest.label, category="records", category_bytes=needed)
