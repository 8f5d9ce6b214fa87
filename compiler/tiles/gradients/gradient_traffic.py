"""Traffic and cycles of windowed input gradients, which are sums of partial products.

Stage one (superstep B3) adds the partial products of each part on tiles of the chip of its first producer. Stage two (superstep B1) adds
the sums of all parts on relays. :mod:`~snnc.compiler.tiles.exchange.gradient_windows` explains parts, producers and stages;
docs/decisions/0001-poplar-program.md explains the supersteps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, places_within
from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic, Layout, send_over_links
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.relays.relay_workers import Shares, by_samples
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.schedule.timeline import Rounds
from snnc.compiler.tiles.vertices.gradient_vertices import gradient_window, reduce_partials
from snnc.compiler.tiles.vertices.loops import cycles_of


def partials_to_sums(layout: Layout) -> ExchangeTraffic:
    """Return the exchange before B3: a tile that adds products of a part receives one fragment from each of its producers elsewhere."""
    traffic = ExchangeTraffic.none(layout.problem)
    for reduction in layout.reductions.values():
        table = reduction.table
        for (sample, samples), tiles in reduction.producers.items():
            here = (table["sample"] >= sample) & (table["sample"] < sample + samples)
            _add_partials(layout, traffic, {name: column[here] for name, column in table.items()}, tiles)
            np.add.at(traffic.sent, tiles, float(FLOAT * samples * reduction.capacity))
    return traffic


def _add_partials(layout: Layout, traffic: ExchangeTraffic, table: Mapping[str, Ints], tiles: Ints) -> None:
    """Add the traffic of partial products for one range of samples; `tiles` contains the tile of each producer."""
    at = _runs(table["tile"], table["part"])
    tile, first, count = table["tile"][at], table["first"][at], table["producers"][at]
    size: Floats = np.add.reduceat(FLOAT * table["samples"] * table["entries"], at).astype(np.float64)
    # A tile receives `size` bytes from each of the producers [first, first + count) of a part.
    rows = np.repeat(np.arange(len(size)), count)
    source = tiles[np.repeat(first, count) + places_within(count)]
    local = np.bincount(rows, weights=source == tile[rows], minlength=len(size))
    np.add.at(traffic.received, tile, size * (count - local))
    np.add.at(traffic.fragments, tile, count - local)
    send_over_links(layout, traffic, source, tile[rows], size[rows])


def add_sums_to_relays(layout: Layout, traffic: ExchangeTraffic, buses: Collection[Bus] | None = None) -> None:
    """Add the sums of stage one that move to relays: before B1, or with `buses` before a further window of these buses."""
    for bus_id, reduction in layout.reductions.items():
        if buses is not None and layout.problem.bus[bus_id] not in buses:
            continue
        relays = layout.relays[layout.problem.bus[bus_id].source]
        table = _by_sample(reduction.table)
        relay = np.searchsorted([r.sample for r in relays], table["sample"], side="right") - 1
        to = np.array([r.tile for r in relays])[relay]
        moved = to != table["tile"]
        size = FLOAT * table["entries"].astype(np.float64)
        np.add.at(traffic.received, to[moved], size[moved])
        np.add.at(traffic.sent, table["tile"][moved], size[moved])
        pieces = _runs(to, table["part"], table["tile"])
        np.add.at(traffic.fragments, to[pieces], moved[pieces].astype(np.float64))
        send_over_links(layout, traffic, table["tile"], to, size)


def _runs(*columns: Ints) -> Ints:
    """Return the index of the first row of each run of rows with equal values in all `columns`."""
    differs = np.any([np.diff(column) != 0 for column in columns], axis=0)
    return np.concatenate([[0], np.flatnonzero(differs) + 1]).astype(np.int64)


def _by_sample(table: Mapping[str, Ints]) -> dict[str, Ints]:
    rows = np.repeat(np.arange(len(table["tile"])), table["samples"])
    columns = {name: column[rows] for name, column in table.items()}
    return {**columns, "sample": columns["sample"] + places_within(table["samples"])}


def reduced_bytes(layout: Layout) -> dict[str, Ints]:
    """Return the bytes of the sums of stage one on every tile, by lifetime.

    Relays read the sums before the neurons run (lifetime "partial sums"). If a bus has further windows, some of its sums are written before
    the last neurons have run, so all of them live for the whole backward pass (lifetime "backward").
    """
    further = {bus.id for bus in layout.problem.limited(backward=True)}
    sizes = {life: np.zeros(layout.problem.target.tiles, dtype=np.int64) for life in ("backward", "partial sums")}
    for bus, reduction in layout.reductions.items():
        table = reduction.table
        size = FLOAT * table["samples"] * table["entries"]
        np.add.at(sizes["backward" if bus in further else "partial sums"], table["tile"], size)
    return sizes


def add_reduction(layout: Layout, load: Load) -> None:
    """Add stage one: one vertex for each row of a reduction's table."""
    problem = layout.problem
    for reduction in layout.reductions.values():
        table = reduction.table
        amounts = {"entries": table["samples"] * table["entries"], "producers": table["producers"]}
        load.add_vertices(table["tile"], reduce_partials(problem.costs), amounts)


def add_last_sums(layout: Layout, load: Load) -> None:
    """Add stage two: on each relay, all workers share the entries of the windows."""
    problem = layout.problem
    for bus_id, reduction in layout.reductions.items():
        bus, relays = problem.bus[bus_id], layout.relays[layout.problem.bus[bus_id].source]
        samples = tuple((relay.sample, relay.samples) for relay in relays)
        # The window of iteration k + 1, which precedes k in the backward pass.
        entry_pairs = problem.timeline.placed((problem.timeline.entries(bus) + 1) // 2, problem.timeline.first(bus) - 1).T
        make = partial(last_sums, problem, entry_pairs, samples, reduction.parts)
        cycles = problem.memo.get((bus_id, "last sums", samples, reduction.parts), make)
        load.add_kinds(np.array([relay.tile for relay in relays]), np.arange(len(relays)), cycles, shared=True)


def add_sums_of_rounds(layout: Layout, load: Load, buses: Collection[Bus], rounds: Rounds) -> None:
    """Add stage two before each further window: relays add the sums for the window that precedes it."""
    problem = layout.problem
    for bus_id, reduction in layout.reductions.items():
        bus, relays = problem.bus[bus_id], layout.relays[problem.bus[bus_id].source]
        if bus in buses:
            before = problem.timeline.in_rounds(bus, rounds, backward=True, spikes=False, later=-1)
            samples = tuple((relay.sample, relay.samples) for relay in relays)
            cycles = last_sums(problem, ((before + 1) // 2).T, samples, reduction.parts)
            load.add_kinds(np.array([relay.tile for relay in relays]), np.arange(len(relays)), cycles, shared=True)


def last_sums(problem: MappingProblem, entry_pairs: Ints, relays: tuple[tuple[int, int], ...], parts: int) -> Floats:
    """Return the cycles of the slowest worker in stage two, [relays, iterations].

    `entry_pairs`, [samples, iterations], contains the number of pairs of entries in each window. `relays` lists the first sample and the
    number of samples of each relay.
    """
    vertex, workers = gradient_window(problem.costs), problem.target.workers

    def cycles(firsts: Ints, samples: int) -> Any:
        """Return the cycles of relays whose `samples` samples begin at `firsts`."""
        shares = Shares.of(workers, samples)
        at = np.flatnonzero(shares.begins)
        first = shares.class_index[at][:, None]
        end = first + np.diff(np.append(at, len(shares.class_index)))[:, None]
        pairs = entry_pairs[firsts[:, None] + shares.list_index[at]]
        first_of_worker = np.searchsorted(at, samples * np.arange(workers))
        worker_pairs = np.add.reduceat(pairs * end // workers - pairs * first // workers, first_of_worker, axis=1)
        of_workers = cycles_of(vertex.loops, {"lists": shares.pieces[:, None], "pairs": worker_pairs, "parts": parts})
        return problem.target.vertex_start_cycles + vertex.cost.start + of_workers.max(axis=1)

    return by_samples(relays, entry_pairs.shape[1], cycles)
