"""The host streams of a plan: their contents and number, their storage on reserved tiles, and the copies from there.

A stream brings an array in pieces of relays (or of the tiles of losses). On each chip its elements are dealt, in order and in chunks, to
the reserved tiles. One copy distributes the arrays of one kind to their readers in the program, in one exchange.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.ir.plan import BusPlan, Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.placement.grouping import Floats
from snnc.compiler.tiles.relays.buses import COUNT_BYTES, bit_words, whole_words

SEGMENT: Final = "segment"
"""The copy that distributes inputs in segments."""


@dataclass(frozen=True)
class HostStream:
    """One stream into the chips.

    Attributes
    ----------
    what
        "inputs", "labels", or "segment": the copy that distributes it.
    element_bytes
        Bytes of an element.
    pieces
        Tile and elements of each piece, in the order of the stream.
    turns
        Number of transfers per step: segments of inputs in each run of a segment.
    """

    what: Literal["inputs", "labels", "segment"]
    element_bytes: int
    pieces: tuple[tuple[int, int], ...]
    turns: int = 1

    @property
    def bytes(self) -> int:
        """Bytes of one transfer."""
        return self.element_bytes * sum(elements for _, elements in self.pieces)

    def cycles(self, target: Target) -> float:
        """Cycles of one transfer at the rate of the host."""
        assert target.host is not None, "streams are priced where the host's rate is told"
        return math.ceil(self.bytes * target.clock_hz / target.host.bytes_per_second)


def host_streams(plan: Plan, program: StepProgram) -> tuple[HostStream, ...]:
    """Return the streams of one step: arrays of inputs, or of their segments, and labels when training."""
    static = {info.id: info.static for info in program.inputs}
    found = []
    for buses in _inputs(plan, static):
        samples, still = [(relay.tile, relay.samples) for relay in buses[0].relays], static[buses[0].source]
        lags, cut = [bus.lag for bus in buses], plan.segments
        slots, turns = (1, 1) if still else (cut.steps_streamed(min(lags), max(lags)), cut.input_turns)
        what: Literal["inputs", "segment"] = "inputs" if still or plan.streamed == "off" else SEGMENT
        for size, elements in _parts(buses):
            found.append(HostStream(what, size, tuple((tile, number * slots * elements) for tile, number in samples), turns))
    if plan.training:
        found.append(HostStream("labels", FLOAT, tuple((tile, 1) for tile in plan.loss_tiles)))
    return tuple(found)


def _inputs(plan: Plan, inputs: Mapping[str, bool]) -> Iterator[list[BusPlan]]:
    """Buses of each input."""
    by_source: dict[str, list[BusPlan]] = {}
    for bus in plan.buses:
        by_source.setdefault(bus.source, []).append(bus)
    return (buses for source, buses in by_source.items() if source in inputs)


def _parts(buses: Sequence[BusPlan]) -> list[tuple[int, int]]:
    """Bytes of an element and elements a sample and step of the arrays that a relay keeps."""
    bus = buses[0]
    if bus.kind != "events":
        return [(FLOAT, bus.width)]
    if bus.form == "bits":
        return [(FLOAT, bit_words(bus.width))]
    most = bus.width if bus.mode == "exact" else max(each.capacity for each in buses)
    return [(2 if bus.width <= 1 << 16 else 4, whole_words(most, bus.width)), (COUNT_BYTES, 1)]


def chunk_of(elements: int, tiles: int) -> int:
    """Maximum elements of a stream on each reserved tile: whole pairs, so that 16-bit elements fill words."""
    return 2 * math.ceil(math.ceil(elements / tiles) / 2)


@dataclass(eq=False)
class HandOver:
    """One copy from the reserved tiles: bytes and fragments of every tile.

    Attributes
    ----------
    what
        The kind of data.
    turns
        How often in a step.
    received, sent, fragments
        Bytes that tiles receive and send, and pieces that they receive.
    """

    what: str
    turns: int
    received: Floats
    sent: Floats
    fragments: Floats

    def cycles(self, target: Target) -> float:
        """Cycles of its exchange at the busiest tile."""
        return float(self.by_tile(target).max())

    def by_tile(self, target: Target) -> Floats:
        """Cycles in which each tile receives or sends."""
        moved = np.ceil(np.maximum(self.received, self.sent) / target.exchange_bytes_per_cycle)
        found: Floats = moved + target.fragment_cycles * self.fragments
        return found


@dataclass(frozen=True, eq=False)
class Staging:
    """Streams on the reserved tiles.

    Attributes
    ----------
    target, tiles
        The machine, and the number of reserved tiles at the end of each chip.
    streams
        What they hold.
    """

    target: Target
    tiles: int
    streams: tuple[HostStream, ...]

    def place(self, chip: int, chunk: int) -> int:
        """Tile of a chunk."""
        return self.target.tiles_per_chip * (chip + 1) - self.tiles + chunk

    def held(self) -> Floats:
        """Bytes that each tile holds of the next step."""
        found = np.zeros(self.target.tiles)
        for stream in self.streams:
            for _, tile, elements in self._moves(stream):
                found[tile] += stream.element_bytes * elements
        return found

    def hand_overs(self) -> list[HandOver]:
        """The copies in the order of the program: labels before inputs and segments, words before half words."""
        found = []
        for what in ("labels", "inputs", SEGMENT):
            for size in (4, 2):
                some = [stream for stream in self.streams if (stream.what, stream.element_bytes) == (what, size)]
                if some:
                    found.append(self._hand_over(what, some))
        return found

    def _hand_over(self, what: str, streams: Sequence[HostStream]) -> HandOver:
        copy = HandOver(what, streams[0].turns, *(np.zeros(self.target.tiles) for _ in range(3)))
        for stream in streams:
            last = (-1, -1)
            for to, tile, elements in self._moves(stream):
                copy.received[to] += stream.element_bytes * elements
                copy.sent[tile] += stream.element_bytes * elements
                copy.fragments[to] += (to, tile) != last
                last = (to, tile)
        return copy

    def _moves(self, stream: HostStream) -> Iterator[tuple[int, int, int]]:
        """Pieces of a stream on one reserved tile: their destination, that tile, elements."""
        each = self.target.tiles_per_chip
        sizes: dict[int, int] = {}
        for tile, elements in stream.pieces:
            sizes[tile // each] = sizes.get(tile // each, 0) + elements
        chunks, at = {chip: chunk_of(size, self.tiles) for chip, size in sizes.items()}, dict.fromkeys(sizes, 0)
        for to, elements in stream.pieces:
            chip, left = to // each, elements
            while left:
                some = min(left, chunks[chip] - at[chip] % chunks[chip])
                yield to, self.place(chip, at[chip] // chunks[chip]), some
                at[chip], left = at[chip] + some, left - some
