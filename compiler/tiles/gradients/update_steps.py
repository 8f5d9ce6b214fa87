"""Supersteps of the update: sums of private gradients, the norm of all gradients, the optimiser, and the exchange of new weights.

A worker of a tile processes one block of a population: some of the tile's neurons (a column group) for some of its samples. Each block
computes a private gradient, and those of the same column group are summed first. Several tiles may use one weight of an indexed connection,
such as a convolution. One tile, the owner of the weight, then sums the gradients of all column groups (shared gradients).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.blocks.blocks import cut_key
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, ceil_div, column_groups
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.cycles.load import Load, Work
from snnc.compiler.tiles.exchange.indexed_traffic import gradients_to_owners, owned_by, owned_work
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout, between_replicas, parameter_groups, send_to_all, shares_of
from snnc.compiler.tiles.gradients.packing import rows_to_bundles
from snnc.compiler.tiles.gradients.parameter_copies import local_copy_cycles, parameters_to_readers, weights_to_replicas, weights_to_sources
from snnc.compiler.tiles.mapped.learned import LearnedRows, learned_parameters, learned_rows, learned_scalars
from snnc.compiler.tiles.mapped.network import Layer
from snnc.compiler.tiles.memory.lifetimes import PACKED
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.supersteps.superstep import SuperstepDraft
from snnc.compiler.tiles.vertices.loss_vertices import loss_sum
from snnc.compiler.tiles.vertices.parameter_vertices import (
    clip,
    judge_update,
    schedule,
    squares,
    sum_pieces,
    sum_private,
    summands,
    update,
    update_half,
)
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

GRADIENTS: Final = "update: gradients"
"""Name of the superstep that computes the last sums of gradients, if the update is a separate program."""


def update_steps(layout: Layout) -> Iterator[SuperstepDraft]:
    """Yield the supersteps of the update up to the optimiser, as far as the network needs them.

    They sum private gradients and shared gradients, compute the norm of all gradients, and update the parameters.
    """
    problem, network = layout.problem, layout.problem.network
    if layout.owned or any(where.replicas > 1 for where in layout.placement.ranges):
        yield _step(layout, "update: private gradients", _add_private, ExchangeTraffic.none(problem))
    if layout.owned:
        yield _step(layout, "update: shared gradients", _add_owners, gradients_to_owners(layout, network.layers))
    # With a clipping factor, the learning rate is sent together with it; with a loss scale, also before the squares, which read the scale.
    gathered = _rates_to_updates(layout) if network.scaled or not network.norm_cycles else ExchangeTraffic.none(problem)
    if network.extra_passes:  # the update is a separate program
        yield _step(layout, GRADIENTS, partial(_add_shares, vertex=sum_private(problem.costs), sums=True), _shares_of_gradients(layout))
        yield SuperstepDraft("update: rates", 1, Load(problem).add_vertices(0, schedule(problem.costs), {}), ExchangeTraffic.none(problem))
    else:
        gathered.merge(_shares_of_gradients(layout))
    if network.norm_cycles:  # the norm of all gradients is needed
        squared = _loaded(layout, partial(_add_shares, vertex=squares(problem.costs), sums=not network.extra_passes))
        yield from norm_steps(layout, squared, gathered, squared_shares(layout))
        gathered = _rates_to_updates(layout, clips=True)
    yield _step(layout, "update: optimiser", _add_update, gathered)


def copy_steps(layout: Layout) -> Iterator[SuperstepDraft]:
    """Yield the supersteps that copy new parameters: to replicas, then single values to readers, then rows of weights to sources."""
    replicas, readers = weights_to_replicas(layout), parameters_to_readers(layout)
    if replicas is not None:
        yield SuperstepDraft("update: replicas", 1, Load(layout.problem), replicas)
    if readers:
        first, *others = (move.traffic for move in readers)
        local = sum(local_copy_cycles(float(move.stays.max())) for move in readers)
        yield SuperstepDraft("update: shared numbers", 1, Load(layout.problem), first, tuple(others), local=local)
    packed = rows_to_bundles(layout)
    if packed is not None:
        yield SuperstepDraft(PACKED, 1, *packed)
    rows = weights_to_sources(layout)
    if rows is not None:
        yield SuperstepDraft("update: weight copies", 1, *rows)


def least_update(layout: Layout, layer: Layer) -> Floats:
    """Return lower bounds on the tile cycles of four parts of the update of one population, with estimated tables of indexed connections.

    The parts are the exchange of gradients to owners, and the vertices that sum private gradients, sum shared gradients, and update
    parameters.
    """
    traffic, target = gradients_to_owners(layout, (layer,)), layout.problem.target
    exchange = np.ceil(traffic.received / target.exchange_bytes_per_cycle) + target.fragment_cycles * traffic.fragments
    bounds = [float(exchange.max())]
    for add in (_add_private, _add_owners, _add_update):
        work = Work(layout.problem)
        add(layout, (layer,), work)
        bounds.append(float(work.total.max()))
    return np.array(bounds)


def _step(layout: Layout, name: str, add: Callable[[Layout, Sequence[Layer], Load], None], traffic: ExchangeTraffic) -> SuperstepDraft:
    return SuperstepDraft(name, 1, _loaded(layout, add), traffic)


def _loaded(layout: Layout, add: Callable[[Layout, Sequence[Layer], Load], None]) -> Load:
    load = Load(layout.problem)
    add(layout, layout.problem.network.layers, load)
    return load


def _add_owners(layout: Layout, layers: Sequence[Layer], load: Load | Work) -> None:
    problem = layout.problem
    for work in owned_work(layout, layers):
        workers = problem.target.workers
        amounts = {"count": work.elements, "number": work.pieces / workers, "values": work.values / workers}
        load.add_vertices(work.tiles, sum_pieces(problem.costs), amounts, workers)


def _add_private(layout: Layout, layers: Sequence[Layer], load: Load | Work) -> None:
    """Add the vertices that sum the private gradients of each column group, for populations with replicas and for weights with owners."""
    problem = layout.problem
    for layer in layers:
        where = layout.ranges[layer.id]
        if where.replicas > 1:
            for _, amounts, number in _cached(layout, layer, "private", _private_vertices):
                load.add_vertices(where.tiles, sum_private(problem.costs), amounts, number)
    for connection in owned_by(layout, layers):
        where = connection.target
        sample_groups = problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples)
        size = layout.holdings(layout.problem.by_id[connection.link.target])(connection.indexed, "target").largest["size"]
        groups = column_groups(where.tile_neurons, where.columns) * (sample_groups > 1)
        load.add_vertices(where.tiles, sum_private(problem.costs), _summed(problem, size, sample_groups), groups * problem.target.workers)


def _add_update(layout: Layout, layers: Sequence[Layer], load: Load | Work) -> None:
    """Add the update: column groups update their shares of parameters, the first tile of a population its scalars, owners their weights."""
    vertex = update(layout.problem.costs, layout.problem.network.moments)
    network = layout.problem.network
    _add_shares(layout, layers, load, vertex, sums=not (network.norm_cycles or network.extra_passes))


def _add_shares(layout: Layout, layers: Sequence[Layer], load: Load | Work, vertex: VertexSpec, *, sums: bool) -> None:
    """Add vertices that each process a share of a parameter's summed gradients; with `sums`, they also compute the sums."""
    problem = layout.problem
    halves = problem.network.rounding is not None
    half = update_half(problem.costs, problem.network.moments) if vertex.name == "update" and halves else vertex
    for layer in layers:
        for is_half, amounts, number in _cached(layout, layer, vertex.name, partial(_share_vertices, sums=sums)):
            load.add_vertices(layout.ranges[layer.id].tiles, half if is_half else vertex, amounts, number)
    for layer in layers:
        where, scalars = layout.ranges[layer.id], learned_scalars(layer)
        held = layout.shapes(layer) if scalars else ()
        blocks = sum(int(shape.number.sum()) for shape in held)
        load.add_vertices(int(where.tiles[0]), vertex, _summed(problem, 1, blocks if sums else 1), scalars * problem.target.workers)
    for work in owned_work(layout, layers):
        amounts = _summed(problem, work.elements, problem.target.workers if sums else 1)
        load.add_vertices(work.tiles, half if work.half else vertex, amounts, problem.target.workers)


def _summed(problem: MappingProblem, elements: Any, parts: Any) -> dict[str, Any]:
    """Return the amounts of a worker that sums `parts` gradients for its share of `elements`, which is rounded up to whole pairs."""
    return {"count": 2 * ceil_div(ceil_div(elements, 2), problem.target.workers), **summands(parts)}


Vertices: TypeAlias = list[tuple[bool, Any, Any]]
"""For each learned parameter and size of column group: whether it is float16, and amounts and number of vertices on every tile."""


def _cached(
    layout: Layout, layer: Layer, name: str, make: Callable[[MappingProblem, TileRange, Sequence[LearnedRows]], Vertices]
) -> Vertices:
    """Return the result of `make` for the learned parameters with values per neuron.

    It is cached under `name` for populations with equal parameters that are cut in the same way.
    """
    rows, where = tuple(learned_parameters(layer)), layout.ranges[layer.id]
    return layout.problem.memo.get((name, rows, cut_key(where)), partial(make, layout.problem, where, rows))


def _private_vertices(problem: MappingProblem, where: TileRange, rows: Sequence[LearnedRows]) -> Vertices:
    sample_groups, vertices = problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples), []
    for half, groups, elements in _groups_of_parameters(where, rows):
        amounts = _summed(problem, np.tile(elements, where.replicas), sample_groups)
        number = np.tile(groups, where.replicas) * (sample_groups > 1) * problem.target.workers
        vertices.append((half, amounts, number))
    return vertices


def _share_vertices(problem: MappingProblem, where: TileRange, rows: Sequence[LearnedRows], *, sums: bool) -> Vertices:
    sample_groups, vertices = problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples), []
    for half, groups, elements in _groups_of_parameters(where, rows):
        elements_of_tile = shares_of(where, elements).ravel()
        amounts = _summed(problem, elements_of_tile, 1 if not sums else sample_groups if where.replicas == 1 else where.replicas)
        number = np.tile(groups, where.replicas) * (elements_of_tile > 0) * problem.target.workers
        vertices.append((half, amounts, number))
    return vertices


def _groups_of_parameters(where: TileRange, rows: Sequence[LearnedRows]) -> Iterator[tuple[bool, Ints, Ints]]:
    """Yield, for each learned parameter and size of column group: whether it is float16, groups on each tile, elements of a group."""
    for rows_of_parameter, half in rows:
        for groups, elements in parameter_groups(where, rows_of_parameter):
            yield half, groups, elements


# ---- exchange before the update (U1 in docs/decisions/0001-poplar-program.md) ------------------------------------------------------------


def _rates_to_updates(layout: Layout, *, clips: bool = False) -> ExchangeTraffic:
    """Return the exchange in which tiles that update parameters read the learning rate and, with `clips`, the clipping factor."""
    traffic, network = ExchangeTraffic.none(layout.problem), layout.problem.network
    updates = np.zeros(layout.problem.target.tiles, dtype=bool)
    for layer in network.layers:
        if learned_rows(layer):
            updates[layout.ranges[layer.id].tiles] = True
    for connection in layout.owned if layout.exact else ():
        updates[connection.owners.tile[connection.owners.learned]] = True
    updates[0] = False
    # The learning rate, a bias correction (of Adam), and the reciprocal loss scale; the number of the update; the clipping factor.
    for size in (FLOAT * (2 + network.scaled), FLOAT * (network.rounding == "stochastic"), FLOAT * clips):
        if size:
            send_to_all(layout, traffic, 0, np.flatnonzero(updates), size)
    return traffic


def _shares_of_gradients(layout: Layout) -> ExchangeTraffic:
    """Return the exchange in which replicas gather the gradients of their shares.

    In addition, the first tile of each population gathers the gradients of its scalar parameters.
    """
    problem, traffic = layout.problem, ExchangeTraffic.none(layout.problem)
    for layer in problem.network.layers:
        where = layout.ranges[layer.id]
        for rows in learned_rows(layer):
            between_replicas(layout, traffic, where, rows, gathers=True)
        if learned_scalars(layer):
            groups = np.tile(column_groups(where.neurons, where.columns), where.replicas)
            sample_groups = problem.sample_groups(where.tile_neurons, where.columns, where.tile_samples)
            away = where.tiles != where.tiles[0]
            moved = learned_scalars(layer) * FLOAT * int((groups * sample_groups)[away].sum())
            traffic.add(int(where.tiles[0]), moved, learned_scalars(layer) * int(away.sum()))
            for chip, size in layout.by_chip(where.tiles, learned_scalars(layer) * FLOAT * groups * sample_groups).items():
                traffic.flows.send(chip, (layout.chip_of(int(where.tiles[0])),), size)
    return traffic


def norm_steps(layout: Layout, squares: Load, gradients: ExchangeTraffic, shares: Ints) -> Iterator[SuperstepDraft]:
    """Yield the supersteps that compute the clipping factor of the update from the gradients and, with a loss scale, adapt this scale.

    `squares` is the load of the vertices that sum squares, `shares` their number on each tile, `gradients` the exchange before them.
    """
    problem, tiles = layout.problem, np.flatnonzero(shares)
    adds = loss_sum(problem.costs)
    yield SuperstepDraft("update: squares", 1, squares, gradients)
    load = Load(problem).add_vertices(tiles, adds, {"count": shares[tiles] * problem.target.workers})
    yield SuperstepDraft("update: norm of tiles", 1, load, ExchangeTraffic.none(problem))
    if layout.several_chips:
        heads, number = heads_of_chips(layout, tiles)
        load = Load(problem).add_vertices(heads, adds, {"count": number})
        yield SuperstepDraft("update: norm of chips", 1, load, _to_heads(layout, tiles, np.repeat(heads, number)))
        tiles = heads
    load = Load(problem).add_vertices(0, clip(problem.costs), {"count": len(tiles)})
    yield SuperstepDraft("update: norm", 1, load, _to_heads(layout, tiles, np.zeros(len(tiles), dtype=np.int64)))
    if problem.network.scaled:
        load = Load(problem).add_vertices(0, judge_update(problem.costs), {})
        yield SuperstepDraft("update: loss scale", 1, load, ExchangeTraffic.none(problem))


def squared_shares(layout: Layout) -> Ints:
    """Return the number of vertices on each tile that sum squares of gradients, each for a share of a parameter."""
    number = np.zeros(layout.problem.target.tiles, dtype=np.int64)
    for layer in layout.problem.network.layers:
        where = layout.ranges[layer.id]
        for _, groups, elements in _groups_of_parameters(where, learned_parameters(layer)):
            number[where.tiles] += np.tile(groups, where.replicas) * (shares_of(where, elements).ravel() > 0)
        number[where.tiles[0]] += learned_scalars(layer)
    for tiles, *_ in owned_work(layout, layout.problem.network.layers):
        np.add.at(number, tiles, 1)
    return number


def heads_of_chips(layout: Layout, tiles: Ints) -> tuple[Ints, Ints]:
    """Return the first of `tiles` (in ascending order) on each chip, and the number of `tiles` on that chip."""
    _, first, number = np.unique(tiles // layout.problem.target.tiles_per_chip, return_index=True, return_counts=True)
    return tiles[first], number


def norm_bytes(layout: Layout, shares: Ints) -> Ints:
    """Return the bytes for the norm on each tile, given the result of :func:`squared_shares`.

    They are sums of squares (of each worker for each share, of the tile, and of its chip), and the factor.
    """
    size: Ints = FLOAT * (shares * layout.problem.target.workers + (shares > 0))
    size[0] += FLOAT
    if layout.several_chips:
        size[heads_of_chips(layout, np.flatnonzero(shares))[0]] += FLOAT
    return size


def _to_heads(layout: Layout, tiles: Ints, heads: Ints) -> ExchangeTraffic:
    traffic = ExchangeTraffic.none(layout.problem)
    away = tiles != heads
    np.add.at(traffic.received, heads[away], FLOAT)
    np.add.at(traffic.fragments, heads[away], 1)
    traffic.sent[tiles[away]] += FLOAT
    for tile, head in zip(tiles[away].tolist(), heads[away].tolist(), strict=True):
        traffic.flows.send(layout.chip_of(tile), (layout.chip_of(head),), FLOAT)
    return traffic
