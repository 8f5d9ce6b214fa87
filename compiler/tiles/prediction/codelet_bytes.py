"""Codelets on every tile: the number of vertices of each class, their fields and their instructions.

A class is identified by the data from which it is printed: its cost, the connections or buses that it reads, and its equations. Two
populations with the same structure share a class on a tile. Each field takes one word.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Ints, column_groups
from snnc.compiler.tiles.codelets.block_codelets import block_codelets
from snnc.compiler.tiles.codelets.relay_codelets import relay_codelets
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.gradients.packing import packings
from snnc.compiler.tiles.gradients.update_steps import heads_of_chips, squared_shares
from snnc.compiler.tiles.mapped.learned import learned_parameters, learned_scalars
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.window_test import ROOT
from snnc.compiler.tiles.vertices.control_vertices import CLOCK_VERTEX, ZERO_VERTEX, answer, count_down, known, most, most_of_workers
from snnc.compiler.tiles.vertices.gradient_vertices import gradient_window, reduce_partials, remember
from snnc.compiler.tiles.vertices.loss_vertices import loss_scores, loss_sum, sample_loss
from snnc.compiler.tiles.vertices.parameter_vertices import (
    clip,
    judge_update,
    pack_rows,
    schedule,
    squares,
    sum_pieces,
    sum_private,
    update,
    update_half,
    weight_rows,
)
from snnc.compiler.tiles.vertices.relay_vertices import copy_mask
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

WORD: Final = 4
"""Bytes of a field of a vertex."""
Codelets: TypeAlias = tuple[tuple[VertexSpec, int], ...]
LISTED: Final = 1
"""Number of words of a vertex in addition to its fields: its entry in the compute set's list."""


@dataclass(frozen=True, eq=False)
class Use:
    """Vertices of one class: `number` on each of `tiles` (a tile may occur several times).

    `key` identifies the class if the name of `vertex` does not.
    """

    vertex: VertexSpec
    tiles: Any
    number: Any
    key: Hashable = None


def uses(layout: Layout) -> Iterator[Use]:
    """Yield the uses of all classes of codelets in a placement."""
    for layer in layout.problem.network.layers:
        yield from _of_blocks(layout, layer)
        yield from _of_updates(layout, layer)
    for source, relays in layout.relays.items():
        tiles = np.array([relay.tile for relay in relays])
        codelets = layout.problem.memo.get(("relay codelets", source.buffer), partial(tuple, relay_codelets(layout.problem, source)))
        for key, vertex, number in codelets:
            yield Use(vertex, tiles, number, key)
        if layout.problem.fused is not None:
            yield Use(CLOCK_VERTEX, tiles, 1)
            if not source.external and source.kind == "spikes":
                yield Use(copy_mask(layout.problem.costs), layout.ranges[source.owner].tiles, 1)
    yield from _single(layout)
    yield from _of_losses(layout)
    yield from _of_reductions(layout)
    yield from _of_owners(layout)
    yield from _of_gradient_norm(layout)
    for _, packing in packings(layout):
        yield Use(pack_rows(layout.problem.costs), packing.tiles, 1)


def _of_blocks(layout: Layout, layer: Layer) -> Iterator[Use]:
    problem, where = layout.problem, layout.ranges[layer.id]
    groups = column_groups(where.tile_neurons, where.columns)
    blocks = groups * problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples)
    structure = problem.memo.get(("structure", layer.id), lambda: _structure(layer))
    for vertex, number in _block_codelets(layout, layer):
        shown = structure if vertex.name in ("forward", "backward", "source_gradient") else None
        key = None if vertex is ZERO_VERTEX else (vertex.name, vertex.cost, len(vertex.fields), shown)
        yield Use(vertex, where.tiles, number * blocks, key)


def _block_codelets(layout: Layout, layer: Layer) -> Codelets:
    problem = layout.problem
    if not layout.distinct_groups(layer):
        return problem.memo.get(("codelets", layer.id), lambda: tuple(block_codelets(problem, layer)))
    return tuple(block_codelets(problem, layer, lambda link, side: link.on_tiles.form(side, layout.ranges[layer.id])))


def _structure(layer: Layer) -> Hashable:
    """Return the properties of a population that its printed code depends on, besides costs and fields."""
    # Tables of an indexed connection: starts of rows, first targets and weights of runs of entries, and lengths unless all are 1.
    tables = [0 if link.indexed is None else 3 + (link.indexed.map.length > 1) for link in layer.incoming]
    links = tuple((link.port, link.events, link.dense, link.weight_elements > 0, n) for link, n in zip(layer.incoming, tables, strict=True))
    return (
        repr(layer.kernel.forward),
        links,
        len(layer.outgoing),
        tuple(source.kind for source in layer.sent),
        layer.records,
        layer.stores_adjoint,
    )


def _of_updates(layout: Layout, layer: Layer) -> Iterator[Use]:
    problem, where = layout.problem, layout.ranges[layer.id]
    if not problem.training:
        return
    groups, learned = column_groups(where.tile_neurons, where.columns), learned_parameters(layer)
    updates = _update(problem)
    if learned:
        halves = sum(parameter.half for parameter in learned) if problem.network.rounding is not None else 0
        if halves:
            yield Use(_update(problem, half=True), where.tiles, halves * groups)
        if len(learned) > halves:
            yield Use(updates, where.tiles, (len(learned) - halves) * groups)
        if problem.network.extra_passes:
            yield Use(sum_private(problem.costs), where.tiles, len(learned) * groups)
        if where.replicas > 1:
            shares = problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples)
            several = np.flatnonzero(shares > 1)
            yield Use(sum_private(problem.costs), where.tiles[several], len(learned) * groups[several])
    if learned_scalars(layer):
        yield Use(updates, where.tiles[:1], learned_scalars(layer))
        if problem.network.extra_passes:
            yield Use(sum_private(problem.costs), where.tiles[:1], learned_scalars(layer))
    copied = sum(problem.copies(link) and link.dense for link in layer.outgoing)
    if copied:
        yield Use(weight_rows(problem.costs, half=problem.network.half_weights), where.tiles, copied)


def _update(problem: MappingProblem, *, half: bool = False, placed: bool = False) -> VertexSpec:
    """Return the vertex that updates a parameter; if the caller of the program updates it, the vertex that sums its gradients."""
    network = problem.network
    if network.external:
        return sum_private(problem.costs)
    clips = network.norm_cycles > 0
    if half:
        return update_half(
            problem.costs, network.moments, accumulates=network.accumulates, clips=clips, rounding=network.rounding, placed=placed
        )
    return update(problem.costs, network.moments, accumulates=network.accumulates, clips=clips)


def _of_gradient_norm(layout: Layout) -> Iterator[Use]:
    problem = layout.problem
    if not problem.network.norm_cycles:
        return
    shares = squared_shares(layout)
    tiles = np.flatnonzero(shares)
    scaled = problem.network.scaled
    yield Use(squares(problem.costs, accumulates=problem.network.accumulates, scaled=scaled), tiles, shares[tiles])
    yield Use(loss_sum(problem.costs), tiles, 1)
    if layout.several_chips:
        yield Use(loss_sum(problem.costs), heads_of_chips(layout, tiles)[0], 1)
    yield Use(clip(problem.costs), np.zeros(1, dtype=np.int64), 1)
    if scaled:
        yield Use(judge_update(problem.costs, accumulates=problem.network.accumulates), np.zeros(1, dtype=np.int64), 1)


def _single(layout: Layout) -> Iterator[Use]:
    problem, first = layout.problem, np.zeros(1, dtype=np.int64)
    yield Use(CLOCK_VERTEX, layout.clock_tiles, 2 + 2 * problem.training + (problem.segment > 0))
    yield from _of_tests(layout)
    if problem.training and not problem.network.external:
        yield Use(loss_sum(problem.costs), first, 1)
        yield Use(schedule(problem.costs, scaled=problem.network.scaled), first, 1)


def _of_tests(layout: Layout) -> Iterator[Use]:
    problem, test, root = layout.problem, layout.window_test, np.array([ROOT])
    if test is None:
        return
    for level in test.levels:
        yield Use(most(problem.costs), level.tile, 1)
    yield Use(most_of_workers(problem.costs), root, 1)
    yield Use(answer(problem.costs, looks_back=problem.further.known), root, 1)
    yield Use(count_down(problem.costs), root, 1 + problem.further.known)
    if problem.further.known:
        yield Use(known(problem.costs), root, 1)


def _of_losses(layout: Layout) -> Iterator[Use]:
    problem = layout.problem
    if not problem.training or problem.network.external:
        return
    tiles, loss = np.array(layout.loss_tiles), problem.network.loss
    yield Use(sample_loss(problem.costs, loss, scaled=problem.network.scaled), tiles, 1)
    if loss.scores:
        yield Use(loss_scores(problem.costs, loss), tiles, 1)


def _of_reductions(layout: Layout) -> Iterator[Use]:
    problem = layout.problem
    limited = {bus.id for bus in problem.limited(backward=True)} if problem.training else set()
    for bus_id, reduction in layout.reductions.items():
        yield Use(reduce_partials(problem.costs), reduction.table["tile"], 1)
        relays = layout.relays[problem.bus[bus_id].source]
        tiles, sets = np.array([relay.tile for relay in relays]), 1 + (bus_id in limited)
        yield Use(remember(problem.costs), tiles, sets)
        yield Use(gradient_window(problem.costs), tiles, sets)


def _of_owners(layout: Layout) -> Iterator[Use]:
    problem = layout.problem
    for weights in layout.owned if layout.exact else ():
        tiles, where = weights.owners.tile[weights.owners.learned], weights.target
        halves = weights.halves[weights.owners.learned]
        yield Use(sum_pieces(problem.costs), tiles, problem.target.workers)  # each worker sums a share of the pieces
        for half in (False, True):
            if (halves == half).any():
                yield Use(_update(problem, half=half, placed=half and weights.indexed.map.reordered), tiles[halves == half], 1)
        if problem.network.extra_passes:
            yield Use(sum_private(problem.costs), tiles, 1)
        groups = column_groups(where.tile_neurons, where.columns)
        several = np.flatnonzero(problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples) > 1)
        yield Use(sum_private(problem.costs), where.tiles[several], groups[several])


def codelet_bytes(layout: Layout) -> tuple[Ints, Ints]:
    """Return, for every tile, the bytes of code (each class and each shared loop once) and of the fields of all vertices."""
    target = layout.problem.target
    vertices: Ints = np.zeros(target.tiles, dtype=np.int64)
    held: dict[Hashable, tuple[int, Any]] = {}
    for use in uses(layout):
        tiles, number = np.asarray(use.tiles), np.broadcast_to(use.number, np.shape(use.tiles))
        np.add.at(vertices, tiles, WORD * (len(use.vertex.fields) + LISTED) * number)
        here, cost = tiles[number > 0], use.vertex.cost
        for key, instructions in ((use.key or use.vertex.name, cost.instructions), *((("loop", name), size) for name, size in cost.loops)):
            _, on = held.setdefault(key, (instructions, np.zeros(target.tiles, dtype=bool)))
            on[here] = True
    code: Ints = np.zeros(target.tiles, dtype=np.int64)
    for instructions, on in held.values():
        code += target.instruction_bytes * instructions * on
    return code, vertices
