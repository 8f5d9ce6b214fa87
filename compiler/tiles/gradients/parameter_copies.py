"""Copies of parameters after an update: to other replicas, to tiles that read shared values, and to sources of connections.

In the backward pass, a source computes its gradient with a copy of the weights, which it reads from the target: one or two pieces from each
column group (a part of the neurons of a tile), fewer if a replica of the source has a single tile, or one piece from each bundle of tiles
(:mod:`snnc.compiler.tiles.gradients.packing`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, ceil_div, column_groups
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.indexed_traffic import weights_from_owners
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout, between_replicas, send_to_all, shared_tiles
from snnc.compiler.tiles.gradients.packing import equal_runs, group_sizes, nearest, packed_to_source, packing_of, row_pieces
from snnc.compiler.tiles.mapped.learned import learned_parameters
from snnc.compiler.tiles.mapped.network import Link
from snnc.compiler.tiles.vertices.loops import cycles_of
from snnc.compiler.tiles.vertices.parameter_vertices import weight_rows

LOCAL_START: Final = 288.0
"""Fixed tile cycles of a copy inside a tile; from Poplar profiles."""
LOCAL_BYTES: Final = 8.0
"""Bytes per tile cycle of a copy inside a tile; from Poplar profiles."""


@dataclass(frozen=True, eq=False)
class Move:
    """A copy of parameters: the exchange between tiles, and the number of bytes that each tile copies within its memory (`stays`)."""

    traffic: ExchangeTraffic
    stays: Floats


def local_copy_cycles(size: float) -> float:
    """Return the tile cycles of a copy of `size` bytes inside a tile; 0 if `size` is 0."""
    return LOCAL_START + math.ceil(size / LOCAL_BYTES) if size > 0 else 0.0


def weights_to_replicas(layout: Layout) -> ExchangeTraffic | None:
    """Return the exchange in which replicas send their updated shares of parameters to the others; None if no replicas learn."""
    replicated = [(layer, where) for layer in layout.problem.network.layers if (where := layout.ranges[layer.id]).replicas > 1]
    if not any(learned_parameters(layer) for layer, _ in replicated):
        return None
    traffic = ExchangeTraffic.none(layout.problem)
    for layer, where in replicated:
        for rows, half in learned_parameters(layer):
            between_replicas(layout, traffic, where, rows, gathers=False, size=HALF if half else FLOAT)
    return traffic


def parameters_to_readers(layout: Layout) -> list[Move]:
    """Return the copies of parameters to the tiles that read them: one move for float32 and one for float16 values, if there are any.

    The parameters are values that all neurons share, the weights of one-to-one connections, and the weights of indexed connections.
    """
    return [move for size in (FLOAT, HALF) if (move := _move_to_readers(layout, size)) is not None]


def _move_to_readers(layout: Layout, size: int) -> Move | None:
    """Return the move of :func:`parameters_to_readers` for values of `size` bytes; None if no such value exists."""
    problem, move = layout.problem, Move(ExchangeTraffic.none(layout.problem), np.zeros(layout.problem.target.tiles))
    any_moves = weights_from_owners(layout, size, move.traffic, move.stays)
    for layer in problem.network.layers if size == FLOAT else ():
        where = layout.ranges[layer.id]
        shared = layer.scalar_parameters + sum(
            link.one_to_one and link.weight_elements == 1 and layer.neurons > 1 for link in layer.incoming
        )
        for _ in range(shared):
            any_moves = True
            _shared(layout, move, int(where.tiles[0]), where)
    for link in problem.network.links if problem.training else ():
        if problem.copies(link) and link.weight_elements and link.one_to_one and size == (HALF if link.half else FLOAT):
            any_moves = True
            source, target = layout.ranges[link.source.owner], layout.ranges[link.target]
            if link.weight_elements == 1:
                _shared(layout, move, int(target.tiles[0]), source)
            else:
                _pairs(layout, move, source, target, size)
    return move if any_moves else None


def _shared(layout: Layout, move: Move, home: int, where: TileRange) -> None:
    """Add the copies of one shared value from the tile `home` to every column group."""
    groups = np.tile(column_groups(where.neurons, where.columns), where.replicas)
    away = where.tiles != home
    send_to_all(layout, move.traffic, home, where.tiles[away], FLOAT)
    move.traffic.add(where.tiles, FLOAT * (groups - 1) * away, (groups - 1) * away)
    move.stays[where.tiles] += FLOAT * groups * ~away


def _pairs(layout: Layout, move: Move, source: TileRange, target: TileRange, size: int) -> None:
    """Add one-to-one weights of `size` bytes, which the source copies from the target.

    A tile of the source reads one piece from each tile of the target with some of its neurons.
    """
    ends, target_ends = np.cumsum(source.neurons), np.cumsum(target.neurons)
    for r in range(source.replicas):
        tiles, origin = source.of(r), target.of(nearest(source, target, r))
        for index, (tile, last) in enumerate(zip(tiles.tolist(), ends.tolist(), strict=True)):
            first = last - int(source.neurons[index])
            begin = int(np.searchsorted(target_ends, first, side="right"))
            end = int(np.searchsorted(target_ends, last, side="left"))
            for other in range(begin, end + 1):
                common = min(last, int(target_ends[other])) - max(first, int(target_ends[other] - target.neurons[other]))
                if int(origin[other]) == tile:
                    move.stays[tile] += size * common
                else:
                    move.traffic.add(tile, size * common, 1)
                    move.traffic.sent[origin[other]] += size * common
                    move.traffic.flows.send(layout.chip_of(int(origin[other])), (layout.chip_of(tile),), size * common)


# ---- dense weights, by rows, on their source ------------------------------------------------------------------------


def weights_to_sources(layout: Layout) -> tuple[Load, ExchangeTraffic] | None:
    """Return the work and the exchange to copy weights to the sources that need them for their gradients; None if no source needs weights.

    All workers of a source tile sort the rows that it reads by neuron of the target.
    """
    problem = layout.problem
    links = [link for link in problem.network.links if link.dense and problem.copies(link)] if problem.training else []
    if not links:
        return None
    traffic, load = ExchangeTraffic.none(problem), Load(problem)
    for link in links:
        source, target = layout.ranges[link.source.owner], layout.ranges[link.target]
        packing = packing_of(layout, link)
        if packing is None:
            _rows(layout, traffic, link, source, target)
        else:
            packed_to_source(layout, traffic, packing)
        sizes, which = np.unique(source.neurons, return_inverse=True)
        key, row_cycles = ("weight rows", target.neurons.tobytes(), target.columns), _half_cycles if link.half else _cycles
        cycles = np.array([problem.memo.get((*key, n), partial(row_cycles, layout, n, target)) for n in sizes.tolist()])[which]
        load.add(source.tiles, np.tile(cycles, source.replicas), problem.target.workers)
    return load, traffic


def _cycles(layout: Layout, rows: int, target: TileRange) -> float:
    """Return the cycles of the busiest worker that sorts `rows` rows of weights; elements are distributed to workers as in the codelet."""
    problem, worker = layout.problem, np.arange(layout.problem.target.workers)
    cycles, vertex = np.zeros(len(worker)), weight_rows(problem.costs)
    for tiles, columns in equal_runs(target.neurons):
        column = rows * tiles
        begin, end = (column * columns * (worker + k) // len(worker) for k in (0, 1))
        touched = np.where(end > begin, (end - 1) // column - begin // column + 1, 0)
        cycles += cycles_of(vertex.loops, {"columns": columns, "rows": touched * rows, "weights": end - begin})
    return problem.target.vertex_start_cycles + vertex.cost.start + float(cycles.max())


def _half_cycles(layout: Layout, rows: int, target: TileRange) -> float:
    """Return the cycles of :func:`_cycles` for float16 weights; each worker processes an even number of columns of all rows."""
    problem, worker = layout.problem, np.arange(layout.problem.target.workers)
    cycles, vertex, at = np.zeros(len(worker)), weight_rows(problem.costs, half=True), 0
    outputs = int(target.neurons.sum())
    begin, end = (np.minimum(2 * (ceil_div(outputs, 2) * (worker + k) // len(worker)), outputs) for k in (0, 1))
    for tiles, columns in equal_runs(target.neurons):
        overlap = np.maximum(np.minimum(end, at + tiles * columns) - np.maximum(begin, at), 0)
        first = np.maximum(begin - at, 0) // max(columns, 1)
        last = np.minimum(ceil_div(np.maximum(end - at, 0), max(columns, 1)), tiles)
        groups = int(column_groups(np.array([columns]), target.columns)[0])
        amounts = {"runs": 1, "groups": np.maximum(last - first, 0) * groups, "columns": overlap, "weights": overlap * rows}
        cycles += cycles_of(vertex.loops, amounts)
        at += tiles * columns
    return problem.target.vertex_start_cycles + vertex.cost.start + float(cycles.max())


def _rows(layout: Layout, traffic: ExchangeTraffic, link: Link, source: TileRange, target: TileRange) -> None:
    """Add the rows that tiles of the source read; weights in a tile's own memory are not moved."""
    size, memo, key = HALF if link.half else FLOAT, layout.problem.memo, (target.neurons.tobytes(), target.columns, link.inputs)
    pieces, pieces_of_all_rows = memo.get(("row pieces", *key), lambda: (row_pieces(target), _whole_pieces(target, link.inputs)))
    origin = np.array([nearest(source, target, r) for r in range(source.replicas)])
    readers = np.bincount(origin, minlength=target.replicas)
    sent = size * link.inputs * target.tile_neurons * np.repeat(readers > 0, target.width)
    pieces_sent = pieces_of_all_rows if source.width == 1 else pieces
    traffic.sent[target.tiles] += sent
    traffic.add(source.tiles, size * source.tile_neurons * int(target.neurons.sum()), int(pieces_sent.sum()))
    on_both, of_source, of_target = shared_tiles(source.tiles, target.tiles)
    same = origin[of_source // source.width] == of_target // target.width
    on_both, of_source, of_target = on_both[same], of_source[same], of_target[same]
    held = size * source.tile_neurons[of_source] * target.tile_neurons[of_target]
    traffic.add(on_both, -held, -pieces_sent[of_target % target.width])
    traffic.sent[on_both] -= held * (readers[of_target // target.width] == 1)
    for r in range(source.replicas) if layout.several_chips else ():
        homes = layout.by_chip(target.of(int(origin[r])), target.neurons)
        for chip, neurons in layout.by_chip(source.of(r), source.neurons).items():
            for home, part in homes.items():
                traffic.flows.send(home, (chip,), size * neurons * part)


def _whole_pieces(target: TileRange, inputs: int) -> Ints:
    """Return the number of pieces per tile if all rows are read: a piece ends only where a column group is padded to an even size."""
    size, larger, smaller = group_sizes(target)
    padded = larger * (inputs * (size + 1) % 2) + smaller * (inputs * size % 2)
    last_padded = np.where(smaller > 0, inputs * size % 2, inputs * (size + 1) % 2)
    return np.asarray(1 + padded - last_padded, dtype=np.int64)
