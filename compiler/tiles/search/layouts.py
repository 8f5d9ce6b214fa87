"""Layouts: placements of populations, with relays and losses distributed over the tiles.

A relay is a tile that stores the spikes or values of a source for some samples, and sends them to the tiles that read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from snnc.compiler.tiles.blocks.blocks import cut_key
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.cycles.block_cycles import block_cycles
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.memory.block_memory import estimated_bytes, most_bytes
from snnc.compiler.tiles.placement.placement import Placement
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relays import Room, distribute_relays


def make_layout(problem: MappingProblem, placement: Placement, *, local_relays: bool) -> Layout:
    """Place relays and losses on tiles; with `local_relays`, relays are on the chips of their source or of the first reader of an input."""
    used = np.zeros(problem.target.tiles, dtype=np.int64)
    ranges = {layer.id: where for layer, where in zip(problem.network.layers, placement.ranges, strict=True)}
    for layer in problem.network.layers:
        where = ranges[layer.id]
        used[where.tiles] += _most_bytes(problem, layer, where)
    rooms = {}
    for source in problem.network.sources:
        owner = source.owner if not source.external else next(link.target for link in problem.network.links if link.source == source)
        rooms[source] = _rooms(problem, placement, ranges[owner], local_relays=local_relays)
    relays = distribute_relays(problem, used, rooms, ranges, _forward_cycles(problem, ranges))
    return Layout(problem, placement, relays, _loss_tiles(problem, used, ranges))


def _most_bytes(problem: MappingProblem, layer: Layer, where: TileRange) -> Ints:
    return problem.memo.get(("most bytes", layer.id, cut_key(where)), lambda: most_bytes(problem, estimated_bytes(problem, layer, where)))


def _forward_cycles(problem: MappingProblem, ranges: Mapping[str, TileRange]) -> Floats:
    """Return the cycles of blocks on each tile while relays search for spikes; 0 if the two are separate supersteps."""
    total = np.zeros(problem.target.tiles)
    for layer in problem.network.layers if problem.fused is not None else ():
        where = ranges[layer.id]
        args = (problem, layer, where.cut, where.tile_neurons, where.tile_samples, "forward")
        cycles = problem.memo.get(("computing", layer.id, cut_key(where)), partial(block_cycles, *args))
        np.add.at(total, where.tiles, problem.target.workers * np.broadcast_to(cycles, where.tiles.shape))
    return total


def _rooms(problem: MappingProblem, placement: Placement, where: TileRange, *, local_relays: bool) -> list[Room]:
    """Return the tiles allowed for relays in each group of chips: all of the group, or with `local_relays` the chips of `where` in it."""
    per_chip, copies = problem.target.tiles_per_chip, placement.copies
    group = -(-placement.chips // copies) * per_chip
    replicas_of_copy = where.replicas // copies
    rooms = []
    for copy, (sample, samples) in enumerate(split(problem.batch, copies)):
        first, stop = copy * group, min((copy + 1) * group, placement.chips * per_chip)
        if local_relays:
            tiles = where.tiles[copy * replicas_of_copy * where.width : (copy + 1) * replicas_of_copy * where.width]
            first, stop = int(tiles.min()) // per_chip * per_chip, (int(tiles.max()) // per_chip + 1) * per_chip
        rooms.append(Room(first, stop, sample, samples))
    return rooms


def _loss_tiles(problem: MappingProblem, used: Ints, ranges: Mapping[str, TileRange]) -> tuple[int, ...]:
    """Assign the losses of samples in turn to the tiles of the chips on which their outputs are computed, the emptiest tiles first."""
    if not problem.training or problem.network.loss_layer is None:
        return ()
    where, per_chip = ranges[problem.network.loss_layer], problem.target.tiles_per_chip
    tile_of_loss = np.zeros(problem.batch, dtype=np.int64)
    assigned: dict[tuple[int, int], int] = {}
    for replica, (first, count) in enumerate(where.samples):
        tiles = where.of(replica)
        room = int(tiles.min()) // per_chip * per_chip, (int(tiles.max()) // per_chip + 1) * per_chip
        order = np.argsort(used[slice(*room)], kind="stable") + room[0]
        begin = assigned.get(room, 0)
        tile_of_loss[first : first + count] = order[(begin + np.arange(count)) % len(order)]
        assigned[room] = begin + count
    return tuple(tile_of_loss.tolist())
