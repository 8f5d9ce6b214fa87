"""Which events reach each column group of an indexed connection, drawn value by value: a region sees its own few, not the mean of all.

A block of a convolution hears the part of the image that its neurons look at. With a handful of events there, the busiest of hundreds of
blocks has far more than the mean, and blocks of one region have them together. So of every step and sample as many values are drawn as
were counted, each by its rate, and every group is charged for those that are in its tables.
"""

from __future__ import annotations

import math
import zlib
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from snnc.compiler.indexed.tables import Tables
from snnc.compiler.mapping.blocks import Blocks, cut_key
from snnc.compiler.mapping.buses import Bus
from snnc.compiler.mapping.cost import CodeletCost
from snnc.compiler.mapping.grouping import Floats, Ints
from snnc.compiler.mapping.network import Link
from snnc.compiler.mapping.problem import Problem
from snnc.compiler.mapping.traffic import Layout

Windows: TypeAlias = Literal["whole", "first", "last"]
"""What neurons read of a step: all spikes, those of its first window (backward), those of its last one (forward)."""
LARGEST: Final = 40_000_000
"""Numbers of an array that is made for this; larger connections are charged by the mean."""
TINY: Final = 1e-9
"""Rate of values that were never seen to spike."""


def is_drawn(layout: Layout, link: Link) -> bool:
    """Whether the events of `link` are drawn: once tables are known."""
    if link.indexed is None or not link.events or not layout.exact:
        return False
    problem = layout.problem
    bus, where = problem.bus[problem.bus_of[link.id]], layout.range_by_id(link.target)
    columns = problem.timeline.spikes(bus.source).size
    return max(link.inputs, where.width * where.columns) * columns <= LARGEST


def drawn_cycles(layout: Layout, link: Link, blocks: Blocks, cost: CodeletCost, *, backward: bool) -> Floats:
    """[kinds, iterations]: worker cycles in which blocks look up what is drawn, and add up the runs that follow."""
    where = layout.range_by_id(link.target)
    prices = (cost.lookup, cost.found, cost.single, cost.run, cost.choice if link.chooses else cost.value)
    limited = layout.problem.bus[layout.problem.bus_of[link.id]] in layout.problem.limited(backward=backward)
    windows: Windows = "whole" if not limited else "first" if backward else "last"
    key = ("drawn cycles", link.id, cut_key(where), prices, windows)
    before = layout.problem.kept.get(key, lambda: _of_groups(layout, link, prices, windows))
    found: Floats = before[blocks.group, :, blocks.first + blocks.samples] - before[blocks.group, :, blocks.first]
    return found


def _of_groups(layout: Layout, link: Link, prices: tuple[int, ...], windows: Windows) -> Floats:
    """[groups, iterations, samples + 1]: cycles of all samples in front."""
    problem, indexed = layout.problem, link.indexed
    assert indexed is not None
    tables, bus = indexed.tables("target", layout.range_by_id(link.target)), problem.bus[problem.bus_of[link.id]]
    shape = problem.timeline.spikes(bus.source).shape
    column = problem.timeline.placed(1 + np.arange(math.prod(shape)).reshape(shape), problem.timeline.first(bus))
    spikes = problem.kept.get(("drawn spikes", bus.id, windows), lambda: _read(problem, bus, column, windows))
    lookup, *rest = prices
    walked = _walked(tables, rest) @ spikes
    low, high = tables.extent
    seen = np.zeros((link.inputs + 1, spikes.shape[1]), dtype=np.int32)
    np.cumsum(spikes.toarray(), axis=0, out=seen[1:])
    cycles = np.zeros((len(low), spikes.shape[1] + 1))  # column 0: no step
    cycles[:, 1:] = walked.toarray() + lookup * (seen[high] - seen[low])
    found: Floats = np.zeros((len(low), len(column), shape[2] + 1))
    np.cumsum(cycles[:, column], axis=2, out=found[:, :, 1:])
    return found


def _read(problem: Problem, bus: Bus, column: Ints, windows: Windows) -> Any:
    """Sparse [values, columns]: what is drawn, or of it what lies in the window that neurons read, ids ascending.

    `column`: [iterations, samples], 1 + the column that an iteration shows, or 0.
    """
    from scipy.sparse import csc_array

    if windows == "whole":
        return _drawn(problem, bus)
    spikes = problem.kept.get(("drawn spikes", bus.id, "whole"), lambda: _drawn(problem, bus))
    number = np.zeros(1 + spikes.shape[1], dtype=np.int64)
    if windows == "last":
        number[column] = problem.timeline.rounds(backward=False)[:, None]
    every = csc_array(spikes)
    every.sort_indices()
    held = np.diff(every.indptr)
    rank = np.arange(every.nnz) - np.repeat(every.indptr[:-1], held)
    inside = rank // problem.timeline.room(bus, backward=windows == "first") == np.repeat(number[1:], held)
    of = np.repeat(np.arange(spikes.shape[1]), held)[inside]
    return csc_array((every.data[inside], (every.indices[inside], of)), shape=spikes.shape).tocsr()


def _walked(tables: Tables, prices: list[int]) -> Any:
    """Sparse [groups, sources]: cycles of the row of a source, without biases."""
    from scipy.sparse import csr_array

    row, single, run, value = prices
    groups = len(tables.span)
    group = np.repeat(np.arange(groups), tables.span)
    index = np.arange(len(group)) - np.repeat(np.cumsum(tables.span) - tables.span, tables.span)
    source = tables.keys if tables.keyed else tables.low[group] + index
    at = tables.row_start[group] + index
    begin, end = (tables.run_start[group] + tables.rows[at + i] for i in (0, 1))
    total = np.concatenate([[0], np.cumsum(tables.length)])
    cycles = row + (single if tables.single else run) * (end - begin) + value * (total[end] - total[begin])
    return csr_array((cycles.astype(np.float64), (group, source)), shape=(groups, tables.inputs))


def _drawn(problem: Problem, bus: Bus) -> Any:
    """Sparse [values, batches x steps x samples]: 1 where a value spikes."""
    source, relative = bus.source, problem.relative_rate(bus.source.buffer)
    counts = np.ascontiguousarray(problem.timeline.kept(bus).reshape(-1), dtype=np.int64)
    rates = None if relative is None else np.asarray(relative, dtype=np.float64).tobytes()
    return _drawn_once(source.buffer, source.width, counts.tobytes(), rates)


@lru_cache(maxsize=32)
def _drawn_once(buffer: str, width: int, counted: bytes, rates: bytes | None) -> Any:
    """The same of `counted` spikes; plans of one network in other orders, on other machines or on fewer tiles ask for the same."""
    from scipy.sparse import csr_array

    random = np.random.default_rng(zlib.crc32(f"{buffer} values".encode()))
    counts = np.frombuffer(counted, dtype=np.int64)
    scale = np.ones(width) if rates is None else 1 / np.maximum(np.frombuffer(rates, dtype=np.float64), TINY)
    chosen, most = [], max(int(counts.max(initial=0)), 1)
    rows = max(1, LARGEST // (8 * width))
    for first in range(0, len(counts), rows):
        here = counts[first : first + rows]
        # The smallest of exponential waiting times: values are drawn one after the other, each by its rate.
        waiting = random.standard_exponential((len(here), width), dtype=np.float32) * scale.astype(np.float32)
        chosen.append(_smallest(waiting, min(most, width))[np.arange(min(most, width)) < here[:, None]])
    column = np.repeat(np.arange(len(counts)), counts)
    return csr_array((np.ones(len(column), dtype=np.int32), (np.concatenate(chosen), column)), shape=(width, len(counts)))


def _smallest(values: Any, number: int) -> Ints:
    """Places of the `number` smallest of each row, in order."""
    part = np.argpartition(values, number - 1, axis=1)[:, :number] if number < values.shape[1] else np.argsort(values, axis=1)
    order = np.argsort(np.take_along_axis(values, part, axis=1), axis=1)
    found: Ints = np.take_along_axis(part, order, axis=1)
    return found
