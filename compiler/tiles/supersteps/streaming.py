"""Streaming memory: the data that sequences in segments store there, and the cycles to copy these data.

A *row* contains the initial states of a segment, or its history. Each chip copies its part of a row as 32-bit words, and 16-bit ids and
float16 states as half words in a separate copy. A copy waits for all chips, and runs at the rate of streaming memory or of its busiest
tile, whichever is slower (docs/reference/emulator.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, even_neurons, mask_words
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.mapped.network import BusSource, Layer
from snnc.compiler.tiles.schedule.buses import COUNT_BYTES, id_bytes

ROW_BYTES: Final = 1 << 27
"""Maximum bytes of a row of a remote buffer of Poplar; longer rows are split. Poplar documents this limit for the buffer of a stream."""


@dataclass(frozen=True, eq=False)
class TileRowShare:
    """Number of bytes and of contiguous pieces of each tile in a row."""

    bytes: Floats
    pieces: Floats

    def add(self, tiles: Ints | int, size: Floats | Ints | float, pieces: Ints | int) -> None:
        """Add bytes and pieces to `tiles`."""
        np.add.at(self.bytes, tiles, size)
        np.add.at(self.pieces, tiles, pieces)


@dataclass(frozen=True)
class RowCopy:
    """The copies that move a row; those of different chips run one after another."""

    copies: int  # their number
    transfer: float  # sum of their predicted cycles
    fragments: Ints | Floats  # number of contiguous pieces on each tile


def streaming_bytes(layout: Layout) -> tuple[int, ...]:
    """Return the bytes of streaming memory of each chip; empty if none is used."""
    rows, target = layout.problem.segments.rows, layout.problem.target
    if not rows:
        return ()
    held = sum(share.bytes for share in row_shares(layout))
    return tuple(int(rows * size) for size in np.reshape(held, (target.chips, -1)).sum(axis=1))


def row_copy(layout: Layout) -> RowCopy:
    """Return the copies that move a row to or from streaming memory, with predicted cycles."""
    target, copies, cycles = layout.problem.target, 0, 0.0
    shares = row_shares(layout)
    rate = target.streaming.bytes_per_second / target.clock_hz if target.streaming is not None else np.inf
    for share in shares:
        busy = np.ceil(share.bytes / target.exchange_bytes_per_cycle) + target.fragment_cycles * share.pieces
        for chip, tiles in zip(share.bytes.reshape(target.chips, -1), busy.reshape(target.chips, -1), strict=True):
            size = float(chip.sum())
            copies += int(np.ceil(size / ROW_BYTES))
            cycles += max(float(np.ceil(size / rate)), float(tiles.max())) if size else 0.0
    return RowCopy(copies, cycles, np.sum([share.pieces for share in shares], axis=0))


def row_shares(layout: Layout) -> tuple[TileRowShare, TileRowShare]:
    """Return the share of each tile in a row: words, and half words."""
    tiles = layout.problem.target.tiles
    words, halves = (TileRowShare(np.zeros(tiles), np.zeros(tiles)) for _ in range(2))
    history = layout.problem.segments.streamed == "history"
    for layer in layout.problem.network.layers:
        (_add_history if history else _add_boundary)(layout, layer, words, halves)
    for source, relays in layout.relays.items():
        where, samples = np.array([r.tile for r in relays]), np.array([r.samples for r in relays])
        for size, half_words in _relayed(layout, source, history=history):
            (halves if half_words else words).add(where, samples * size, 1)
    return words, halves


def _add_history(layout: Layout, layer: Layer, words: TileRowShare, halves: TileRowShare) -> None:
    """Add the states before and after every step of a segment, and the values that the adjoint reads."""
    where, steps, past = layout.ranges[layer.id], layout.problem.segments.steps_in_history, layer.past
    words.add(where.tiles, FLOAT * past.floats(steps) * where.tile_neurons * where.tile_samples, past.states + past.others)
    if past.half_states + past.half_others:
        neurons = even_neurons(where.tile_neurons, where.cut.columns)
        halves.add(where.tiles, HALF * past.halves(steps) * neurons * where.tile_samples, past.half_states + past.half_others)


def _add_boundary(layout: Layout, layer: Layer, words: TileRowShare, half_words: TileRowShare) -> None:
    """Add the states and the last sent values of blocks, one piece per block and array."""
    where, problem = layout.ranges[layer.id], layout.problem
    spikes = [source for source in layer.sent if source.kind == "spikes"]
    halves = len(layer.kernel.halves)
    lists = len(layer.kernel.states) - halves + len(layer.sent) - len(spikes)  # arrays with one float32 per neuron and sample
    masks = sum(mask_words(where.tile_neurons, where.columns, support=source in problem.windowed) for source in spikes)
    blocks = sum(shape.number for shape in layout.shapes(layer))
    pieces = (lists + len(spikes)) * np.broadcast_to(blocks, where.tiles.shape)
    words.add(where.tiles, FLOAT * where.tile_samples * (lists * where.tile_neurons + masks), pieces)
    if halves:
        size = HALF * halves * where.tile_samples * even_neurons(where.tile_neurons, where.cut.columns)
        half_words.add(where.tiles, size, halves * np.broadcast_to(blocks, where.tiles.shape))


def _relayed(layout: Layout, source: BusSource, *, history: bool) -> Iterator[tuple[int, bool]]:
    """Yield the bytes per sample of each array of a relay in a row, and whether its elements are half words."""
    problem = layout.problem
    if source.static or (source.external and not history):
        return
    slots = problem.steps_stored(source) if history else problem.segments.steps_before(problem.largest_lag(source))
    if not slots:
        return
    size = problem.sequence_bytes(source, slots)
    if source.kind != "spikes" or source in problem.bits:
        yield size, False
        return
    counts = 2 if any(bus.id in problem.returned for bus in problem.buses_of(source)) else 1
    yield size - slots * counts * COUNT_BYTES, id_bytes(source) == 2
    for _ in range(counts):
        yield slots * COUNT_BYTES, False
