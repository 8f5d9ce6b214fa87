"""Worker cycles of a relay in a superstep: its workers search spike masks and write windows (see docs/reference/terms.md).

All workers of a tile share its samples. Each worker searches an equal share of the mask words. A share is cut into *pieces* at the
boundaries of samples. The results are then merged piece by piece. Of every six words of ids in a window, a worker copies a *run*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnc.compiler.tiles.blocks.grouping import ceil_div, mask_unit, mask_units
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.mapped.network import BusSource
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import Bus, bit_words
from snnc.compiler.tiles.vertices.loops import Loop, LoopsByPlace, Values, cycles_of
from snnc.compiler.tiles.vertices.relay_loops import (
    bit_loops,
    boundary_event_loops,
    boundary_loops,
    compact_loops,
    value_loops,
    window_loops,
)

TOGETHER = 4
"""Number of mask words examined at once."""


@dataclass(frozen=True)
class MaskRows:
    """Data that a source sends to its relay for one sample: `row` elements from each of `tiles` tiles.

    An element is a mask unit of `unit` words, or the value of one neuron.
    """

    tiles: int
    row: int
    unit: int = 1

    @property
    def all(self) -> int:
        """Number of elements of a sample."""
        return self.tiles * self.row

    @property
    def row_words(self) -> int:
        """Number of 32-bit words from each tile."""
        return self.row * self.unit


def mask_rows(problem: MappingProblem, source: BusSource, where: TileRange) -> MaskRows:
    """Return the data of one sample that `source`, placed on `where`, sends to its relay."""
    most = int(where.neurons.max())
    if source.kind != "spikes":
        return MaskRows(where.width, most)
    count = ceil_div(most, min(most, where.columns))
    return MaskRows(where.width, int(mask_units(most, where.columns)), int(mask_unit(count, support=source in problem.windowed)))


@dataclass(frozen=True)
class RelayWork:
    """Cycles of the slowest worker in one run of a relay: numbers, or arrays with one element for each number of samples."""

    always: Any
    """Cycles in every iteration."""
    compacting: Any
    """Further cycles in iterations that follow a step of the source."""
    shown: Mapping[str, Any]
    """Further cycles in iterations in which a bus carries a step, by bus id."""
    counted_loops: tuple[tuple[Values, tuple[Loop, ...]], ...] = ()
    """The loops that take these cycles, with their trip counts."""

    @property
    def cycles(self) -> Any:
        """Sum of :attr:`always`, :attr:`compacting` and all of :attr:`shown`."""
        return self.always + self.compacting + sum(self.shown.values())


def _pieces(samples: Any, workers: int) -> Any:
    """Return the maximum number of pieces of a worker; `samples` is a number or an array."""
    count, worker = np.asarray(samples)[..., None], np.arange(workers)
    return (ceil_div((worker + 1) * count, workers) - worker * count // workers).max(axis=-1)


def compact_work(problem: MappingProblem, source: BusSource, rows: MaskRows, samples: Any) -> RelayWork:
    """Return the work of searching the masks of `samples` samples (a number or an array), including the start of the vertex."""
    cost, workers = problem.costs["relay_compact"], problem.target.workers
    units, pieces = ceil_div(samples * rows.all, workers), _pieces(samples, workers)
    together = TOGETHER // rows.unit
    one = np.asarray(samples) == 1
    runs = np.where(one, 1, ceil_div(units, rows.row) + pieces - 1)  # contiguous mask units: those of one tile for one sample
    groups = np.where(one, units // together, units * (rows.row // together) / rows.row)  # of TOGETHER words
    singles = np.where(one, units % together, units * (rows.row % together) / rows.row)  # units in no group
    rate = _found_fraction(problem, source)
    hit = 1.0 - (1.0 - rate) ** (together * source.width / rows.all)
    ids = samples * source.width * rate / workers
    amounts = {"pieces": pieces, "runs": runs, "groups": groups, "singles": singles, "hits": groups * hit, "ids": ids}
    loops = compact_loops(cost)
    searching = cost.start + cycles_of(loops, amounts) - cost.idle
    return RelayWork(problem.target.vertex_start_cycles + cost.idle, searching, {}, ((amounts, loops),))


def _found_fraction(problem: MappingProblem, source: BusSource) -> float:
    """Return the expected fraction of neurons with a bit in the mask of a step: that spiked or, if gradients are windowed, receive one."""
    activity = problem.activity
    return activity.support[source.buffer] if source in problem.windowed else activity.mean.get(source.buffer, 0.0)


def windows_work(problem: MappingProblem, source: BusSource, rows: MaskRows | None, samples: Any, *, forward: bool) -> RelayWork:
    """Return the work of writing windows.

    In the forward pass, if `rows` is not None, the relay first stores the step that the population has finished.
    """
    if source.kind != "spikes":
        return _values_work(problem, source, rows if forward else None, samples)
    buses = problem.buses_of(source)
    if source in problem.bits:
        if rows is None or not forward:
            return bits_work(problem, buses, samples)
        buses = tuple(bus for bus in buses if bus.lag == 1)
    cost, workers = problem.costs["relay_windows"].with_request(), problem.target.workers
    loops, pieces = LoopsByPlace(window_loops(cost, bits=source in problem.bits)), _pieces(samples, workers)
    always = problem.target.vertex_start_cycles + cost.start + cycles_of(loops["lists"], {"lists": pieces * len(buses)})
    copying, joining = {}, 0.0
    counted_loops: list[tuple[Values, tuple[Loop, ...]]] = []
    for bus in buses:
        if forward and rows is not None and bus.lag == 1:
            joining = joining - cycles_of(loops["lists"], {"lists": pieces})  # joining ids also writes this window, without that loop
            copying[bus.id] = 0.0
        else:
            amounts = _copied(problem, bus, samples, forward=forward)
            counted_loops += [({"lists": pieces}, loops["lists"]), (amounts, loops["copied"])]
            copying[bus.id] = cycles_of(loops["copied"], amounts)
    for bus in buses:
        if problem.further.passes(bus.id, forward=forward):
            always = always + cycles_of(loops["request"], {"numbers": samples})
            counted_loops.append(({"numbers": samples}, loops["request"]))
    if forward and rows is not None:
        rate = _found_fraction(problem, source)
        sharing = np.maximum(workers / np.asarray(samples), 1.0)
        ids = samples * source.width * rate / workers
        words = (ids + pieces / 2) / 2 if source.width <= 1 << 16 else ids
        amounts = {"pieces": pieces, "counts": pieces * sharing, "words": words, "ids": ids}
        amounts["bit_words"] = samples * bit_words(source.width) / workers
        joining = joining + cycles_of(loops["joined"], amounts)
        counted_loops.append((amounts, loops["joined"]))
    return RelayWork(always, joining, copying, tuple(counted_loops))


def bits_work(problem: MappingProblem, buses: Sequence[Bus], samples: Any) -> RelayWork:
    """Return the work of converting the bits of a step to ids in the windows of `buses`, with one vertex per bus."""
    cost, workers, start = problem.costs["relay_bits"], problem.target.workers, problem.target.vertex_start_cycles
    loops, pieces = LoopsByPlace(bit_loops(cost)), _pieces(samples, workers)
    always, converting = 0.0, {}
    counted_loops: list[tuple[Values, tuple[Loop, ...]]] = []
    for bus in buses:
        words = bit_words(bus.source.width)
        # Workers that share a sample count the bits before their own part, to know where its ids start; the first counts all other bits.
        counted = words * np.where(np.asarray(samples) % workers == 0, 0, np.minimum(pieces, 2))
        always = always + start + cost.start + cycles_of(loops["lists"], {"lists": pieces})
        read, ids = samples * words / workers, samples * problem.events(bus.source) / workers
        of_bus = [({"words": counted}, loops["counted"]), ({"words": read, "ids": ids}, loops["copied"])]
        converting[bus.id] = sum(cycles_of(loops_of_bus, amounts) for amounts, loops_of_bus in of_bus)
        counted_loops += [({"lists": pieces}, loops["lists"]), *of_bus]
    return RelayWork(always, 0.0, converting, tuple(counted_loops))


def _copied(problem: MappingProblem, bus: Bus, samples: Any, *, forward: bool) -> dict[str, Any]:
    """Return the numbers of words, and of runs of words, that the slowest worker copies into a bus's windows.

    The ids of a backward window are copied twice: for the targets that read the window, and for the source to which gradients return.
    """
    workers, width = problem.target.workers, bus.source.width
    support = bus.id in problem.returned and not forward
    ids = problem.support_events[bus.id] if support else min(problem.events(bus.source), bus.capacity)
    words = copied_words(ids, width)
    turns = (words + workers / 2) / workers
    copied = samples * np.where(np.asarray(samples) < workers, turns, words / workers)
    runs = _pieces(samples, workers) * turns
    return {"words": (1 + support) * copied, "runs": (1 + support) * runs}


def _values_work(problem: MappingProblem, source: BusSource, rows: MaskRows | None, samples: Any) -> RelayWork:
    """Return the work of writing windows of values and, if `rows` is not None, of first storing the last step's values."""
    cost, workers, buses = problem.costs["relay_values"], problem.target.workers, problem.buses_of(source)
    size = ceil_div(samples * source.width, workers)
    older = sum(rows is None or bus.lag != 1 for bus in buses)
    loops = LoopsByPlace(value_loops(cost, joins=True))
    always = problem.target.vertex_start_cycles + cost.start + cycles_of(loops["copied"], {"values": size * len(buses)})
    joining = 0.0
    if rows is None:
        return RelayWork(always, joining, {}, (({"values": size * len(buses)}, loops["copied"]),))
    lines = ceil_div(samples * rows.tiles, workers)
    stored = {"rows": lines, "values": lines * source.width / rows.tiles}
    joining = cycles_of(loops["joined"], stored) - cycles_of(loops["copied"], {"values": size * (len(buses) - older)})
    return RelayWork(always, joining, {}, ((stored, loops["joined"]), ({"values": size * older}, loops["copied"])))


def copied_words(ids: float, width: int) -> float:
    """Return the expected number of 32-bit words for a list of ids, of which `ids` are expected.

    Ids of a source with more than 65,536 neurons have 32 bits. Otherwise a word contains two ids, and the last word is half full in half of
    all cases. If 0.5 ids or fewer are expected, each counts as one word.
    """
    return ids if width > 1 << 16 else (ids + 0.5) / 2 if ids > 0.5 else ids


def boundary_cycles(problem: MappingProblem, source: BusSource, samples: Any, *, first: bool = False) -> Any:
    """Return the expected worker cycles to copy the steps that a relay has not sent yet, at a boundary between two segments.

    At the `first` boundary, before step 0, a relay has no such steps.
    """
    start = problem.target.vertex_start_cycles
    steps = 0.0 if first else (problem.largest_lag(source) - 1) / problem.schedule.interval
    if source.kind != "spikes" or source in problem.bits:
        row = bit_words(source.width) if source in problem.bits else source.width
        cost = problem.costs["boundary"]
        return start + cost.start + cycles_of(boundary_loops(cost), {"rows": steps, "words": steps * samples * row})
    words = steps * samples * copied_words(source.width * _found_fraction(problem, source), source.width)
    cost = problem.costs["boundary_events"]
    return start + cost.start + cycles_of(boundary_event_loops(cost), {"steps": steps, "lists": steps * samples, "words": words})
