"""Cycles of blocks of an indexed connection, from the events of each value (neuron or input element) of the source.

A block of a convolution receives events only from the part of the image that its neurons read. Few events occur there, so the busiest of
hundreds of blocks has far more events than the mean. For every column group (the neurons of a block), this module therefore counts the
events in each step and sample that have a row in the group's tables. Without measured spikes, it draws the spiking values at random:
as many as the timeline counts, with probabilities proportional to their rates.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.tiles.blocks.blocks import Blocks, cut_key
from snnc.compiler.tiles.blocks.grouping import Floats, Ints
from snnc.compiler.tiles.codelets.block_loops import converted
from snnc.compiler.tiles.exchange.traffic import Layout
from snnc.compiler.tiles.indexed.tables import IndexTables
from snnc.compiler.tiles.mapped.network import Link
from snnc.compiler.tiles.problem import MappingProblem
from snnc.compiler.tiles.schedule.buses import Bus
from snnc.compiler.tiles.schedule.timeline import EventTimeline, Rounds, fitted
from snnc.compiler.tiles.vertices.cost import CodeletCost

Windows: TypeAlias = Literal["whole", "first", "last", "further forward", "further backward"]
"""Spikes of a step that blocks read: all, those of the first (backward) or last window (forward), or those of each further window."""
LARGEST: Final = 40_000_000
"""Maximum number of elements of a temporary array; for connections that need more, the mean number of events is used."""
TINY: Final = 1e-9
"""Rate assumed for values whose measured rate is 0."""


def is_drawn(layout: Layout, link: Link, further: Rounds | None = None) -> bool:
    """Return whether the events of `link`, or of its `further` windows, are counted for each value of the source, measured or drawn.

    The layout must be :attr:`~Layout.exact`, and the arrays small enough (:data:`LARGEST`); :func:`drawn_cycles` then returns their cycles.
    """
    if link.indexed is None or not link.events or not layout.exact:
        return False
    problem = layout.problem
    bus, where = problem.bus_into(link), layout.ranges[link.target]
    columns = problem.timeline.spikes(bus.source).size
    if further is not None:
        columns = max(columns, len(further.iteration) * problem.batch)
    return max(link.inputs, where.width * where.columns) * columns <= LARGEST


def drawn_cycles(layout: Layout, link: Link, blocks: Blocks, cost: CodeletCost, *, backward: bool, further: bool = False) -> Floats:
    """Return [kinds of blocks, iterations]: worker cycles to look up their events and sum the runs of the rows found.

    With `further`, return [kinds, rounds] for the rounds of :meth:`EventTimeline.further_rounds`.
    """
    where = layout.ranges[link.target]
    each = cost.choice if link.chooses else cost.value + converted(cost, link)
    prices = cost.table_row, cost.single, cost.run, each
    bus, indexed = layout.problem.bus_into(link), link.indexed
    assert indexed is not None
    tables, limited = indexed.on_tiles.tables("target", where), bus in layout.problem.limited(backward=backward)
    windows: Windows = "whole" if not limited else "first" if backward else "last"
    if further:
        windows = "further backward" if backward else "further forward"
    read = layout.problem.memo.get(("read spikes", bus.id, windows), lambda: _read(layout.problem, bus, windows))
    ranges, of_block = np.unique(np.stack([blocks.first, blocks.samples]), axis=1, return_inverse=True)
    key = (bus.id, indexed.map, cut_key(where), windows)  # connections with one source and one map, such as the gates of a cell
    # Data of whole steps do not depend on the schedule.
    memo = layout.problem.value_memo if windows == "whole" else layout.problem.memo
    lookups = memo.get(("looked up", *key), lambda: list(_lookups(tables, read, *ranges)))

    def make() -> Floats:
        walked, count = _walked(tables, prices), read.windows
        of_groups = np.zeros((len(tables.span), ranges.shape[1], count + 1))  # the last element is for iterations without a window
        for disjoint, spikes, passed in lookups:
            of_groups[:, disjoint, :-1] = ((walked @ spikes).toarray() + cost.lookup * passed).reshape(len(of_groups), len(disjoint), count)
        return of_groups

    maps = [other.indexed.map for other in layout.problem.by_id[link.target].incoming if other.indexed is not None]
    of_groups = memo.get(("walked", *key, prices, cost.lookup), make) if maps.count(indexed.map) > 1 else make()
    return of_groups[:, :, read.window][blocks.group, of_block.reshape(-1)]


def _lookups(tables: IndexTables, read: WindowSpikes, first: Ints, count: Ints) -> Iterator[tuple[Ints, Any, Floats]]:
    """Yield sets of disjoint ranges of samples ``[first, first + count)``, their spikes, and the number of lookups of each group.

    Ranges of one set share no sample, so each spike is in at most one of them.

    The lookups are the spikes and the keys (ids of sources with a row) that the group's search passes (``each_event`` in the codelets):

    * the spikes from the first to the last source of the group's rows, and the first spike after these;
    * the keys before the last spike of the sample.
    """
    low, high = tables.extent
    rowless = (tables.span == 0) & tables.keyed  # a search in a table without rows ends at once
    last = read.last()
    for disjoint in _disjoint(first, count):
        range_of = np.full(read.samples, -1)
        for place, number in enumerate(disjoint.tolist()):
            range_of[first[number] : first[number] + count[number]] = place
        spikes, ends = read.joined(range_of, len(disjoint)), last.joined(range_of, len(disjoint))
        after = _between(ends, np.where(rowless, tables.inputs, high), np.full_like(high, tables.inputs))
        yield disjoint, spikes, _between(spikes, low, high) + after + (_keys_before(tables, ends) if tables.keyed else 0.0)


def _keys_before(tables: IndexTables, ends: Any) -> Floats:
    """Return [groups, columns]: number of keys of each group before the values of `ends`, sparse [values, columns]."""
    values, groups = np.flatnonzero(np.diff(ends.indptr)), len(tables.span)
    offsets = np.arange(groups)[:, None] * tables.inputs
    keys = tables.keys + np.repeat(offsets[:, 0], tables.span)
    counts, chosen = np.zeros((groups, ends.shape[1])), ends[values].T.tocsr()
    part = max(1, LARGEST // (8 * max(1, len(values))))
    for begin in range(0, groups, part):
        portion = slice(begin, begin + part)
        before = np.searchsorted(keys, offsets[portion] + values) - tables.key_start[:-1][portion, None]
        counts[portion] = (chosen @ before.T).T
    return counts


def _between(spikes: Any, low: Ints, high: Ints) -> Floats:
    """Return [groups, columns]: number of spikes of the values in ``[low, high)`` of each group."""
    edges, columns = np.unique(np.concatenate([low, high])), spikes.shape[1]
    passed = np.searchsorted(edges, np.arange(spikes.shape[0]), side="right")
    place = np.repeat(passed * columns, np.diff(spikes.indptr)) + spikes.indices
    number = np.bincount(place, spikes.data, (len(edges) + 1) * columns).reshape(len(edges) + 1, columns)
    before = np.cumsum(number, axis=0, dtype=np.float64)
    return before[np.searchsorted(edges, high)] - before[np.searchsorted(edges, low)]


def _disjoint(first: Ints, count: Ints) -> Iterator[Ints]:
    pending = np.argsort(first, kind="stable")
    while len(pending):
        disjoint, stop = [], 0
        for number in pending.tolist():
            if first[number] >= stop:
                disjoint.append(number)
                stop = first[number] + count[number]
        pending = pending[~np.isin(pending, disjoint)]
        yield np.array(disjoint)


@dataclass(frozen=True, eq=False)
class WindowSpikes:
    """The spikes that blocks read from a bus, by window; a whole step counts as one window."""

    spikes: Any
    """Sparse [values, windows x samples]."""
    samples: int
    window: Ints
    """Index of the window that is read in every iteration or round; -1 if the bus carries no step in it."""

    @property
    def windows(self) -> int:
        """Number of windows."""
        return int(self.spikes.shape[1]) // self.samples

    def last(self) -> WindowSpikes:
        """Return only the last spike of each window."""
        from scipy.sparse import csr_array

        values, columns = self.spikes.shape
        last = np.full(columns, -1)
        last[self.spikes.indices] = np.repeat(np.arange(values), np.diff(self.spikes.indptr))  # values ascend: the last assignment remains
        hit = np.flatnonzero(last >= 0)
        return WindowSpikes(csr_array((np.ones(len(hit), np.int32), (last[hit], hit)), shape=(values, columns)), self.samples, self.window)

    def joined(self, range_of: Ints, ranges: int) -> Any:
        """Return sparse [values, ranges x windows]: spikes summed over each range of samples; `range_of` is -1 outside all ranges."""
        from scipy.sparse import csr_array

        window, sample = np.divmod(np.arange(self.spikes.shape[1]), self.samples)
        column = np.where(range_of[sample] < 0, 0, range_of[sample] * self.windows + window)
        data = self.spikes.data * (range_of >= 0)[sample][self.spikes.indices]
        shape = self.spikes.shape[0], ranges * self.windows
        return csr_array((data, column[self.spikes.indices], self.spikes.indptr), shape=shape)


def _read(problem: MappingProblem, bus: Bus, windows: Windows) -> WindowSpikes:
    from scipy.sparse import csc_array

    timeline = problem.timeline
    *steps, samples = timeline.spikes(bus.source).shape
    bits = problem.activity.patterns.get(bus.source.buffer)
    draw = partial(_drawn, problem, bus) if bits is None else partial(_measured, problem, bus, bits)
    spikes = problem.value_memo.get(("drawn spikes", bus.id), draw)  # sparse [values, steps x samples]
    if windows == "whole":
        step = timeline.placed(1 + np.arange(math.prod(steps)).reshape(*steps, 1), timeline.first(bus))[:, 0] - 1
        return WindowSpikes(spikes, samples, step)
    rounds = _rounds(timeline, windows)
    column = timeline.placed(1 + np.arange(math.prod(steps) * samples).reshape(*steps, samples), timeline.first(bus))
    column, window = column[rounds.iteration], rounds.window[:, None]
    place = np.zeros((1 + spikes.shape[1], 1 + int(window.max(initial=0))), dtype=np.int64)
    place[column, window] = 1 + np.arange(column.size).reshape(column.shape)
    place[0] = 0
    every = csc_array(spikes)
    every.sort_indices()  # windows contain ids in ascending order
    per_column = np.diff(every.indptr)
    rank = np.arange(every.nnz) - np.repeat(every.indptr[:-1], per_column)
    spike_column = 1 + np.repeat(np.arange(spikes.shape[1]), per_column)
    number = rank // timeline.capacity(bus, backward=windows in ("first", "further backward"))
    at = np.where(number < place.shape[1], place[spike_column, np.minimum(number, place.shape[1] - 1)], 0)
    shown = at > 0
    read = csc_array((every.data[shown], (every.indices[shown], at[shown] - 1)), shape=(spikes.shape[0], column.size)).tocsr()
    return WindowSpikes(read, samples, np.arange(len(column)))


def _rounds(timeline: EventTimeline, windows: Windows) -> Rounds:
    if windows in ("further forward", "further backward"):
        return timeline.further_rounds(backward=windows == "further backward")
    every = np.arange(len(timeline.chosen))
    return Rounds(every, timeline.rounds(backward=False) if windows == "last" else np.zeros_like(every))


def _walked(tables: IndexTables, prices: Sequence[int]) -> Any:
    """Return sparse [groups, sources]: cycles of a group for the row of a source, without biases."""
    from scipy.sparse import csr_array

    row, single, run, value = prices
    group, source, runs, values = tables.rows_by_source
    cycles = row + (single if tables.single else run) * runs + value * values
    return csr_array((cycles.astype(np.float64), (group, source)), shape=(len(tables.span), tables.inputs))


def _measured(problem: MappingProblem, bus: Bus, bits: Array) -> Any:
    """Return the measured spikes as a sparse matrix; in mode "drop", only those that are sent."""
    from scipy.sparse import csr_array

    counts = problem.timeline.stored(bus)
    spikes = np.unpackbits(fitted(bits, counts.shape).reshape(counts.size, -1), axis=1, count=bus.source.width)
    if problem.mode == "drop":
        spikes &= np.cumsum(spikes, axis=1, dtype=np.int32) <= counts.reshape(-1, 1)
    return csr_array(spikes.T.astype(np.int32))


def _drawn(problem: MappingProblem, bus: Bus) -> Any:
    """Draw as many spiking values as spikes were counted, with probabilities proportional to their rates."""
    source, relative = bus.source, problem.relative_rate(bus.source.buffer)
    counts = np.ascontiguousarray(problem.timeline.stored(bus).reshape(-1), dtype=np.int64)
    rates = None if relative is None else np.asarray(relative, dtype=np.float64).tobytes()
    return _drawn_once(source.buffer, source.width, counts.tobytes(), rates)


@lru_cache(maxsize=32)
def _drawn_once(buffer: str, width: int, counted: bytes, rates: bytes | None) -> Any:
    """Draw `counted` spikes; cached for plans of the same network in other orders of neurons or on other machines."""
    from scipy.sparse import csr_array

    random = np.random.default_rng(zlib.crc32(f"{buffer} values".encode()))
    counts = np.frombuffer(counted, dtype=np.int64)
    scale = np.ones(width) if rates is None else 1 / np.maximum(np.frombuffer(rates, dtype=np.float64), TINY)
    chosen, most = [], max(int(counts.max(initial=0)), 1)
    rows = max(1, LARGEST // (8 * width))
    for first in range(0, len(counts), rows):
        here = counts[first : first + rows]
        # The values with the smallest exponential waiting times are a draw without replacement, weighted by rate.
        waiting = random.standard_exponential((len(here), width), dtype=np.float32) * scale.astype(np.float32)
        chosen.append(_smallest(waiting, min(most, width))[np.arange(min(most, width)) < here[:, None]])
    column = np.repeat(np.arange(len(counts)), counts)
    return csr_array((np.ones(len(column), dtype=np.int32), (np.concatenate(chosen), column)), shape=(width, len(counts)))


def _smallest(values: Any, number: int) -> Ints:
    """Return the indices of the `number` smallest values of each row, in ascending order of the values."""
    part = np.argpartition(values, number - 1, axis=1)[:, :number] if number < values.shape[1] else np.argsort(values, axis=1)
    order = np.argsort(np.take_along_axis(values, part, axis=1), axis=1)
    return np.take_along_axis(part, order, axis=1)
