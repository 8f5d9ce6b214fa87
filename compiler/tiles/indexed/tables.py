"""Cut indexed maps along groups of neurons, and build the tables of each group.

An *entry* of a map connects a source value to a target neuron with a weight. A *group* is a column group: a range of neurons on one
tile. On the target's side, a group's tables contain the entries that lead to its neurons, with a row for each source. On the
source's side, they contain the entries that start from its neurons, with a row for each neuron. Adjacent entries of a row with consecutive
targets and consecutive weights form one *run*; the number of its *values* is the number of its targets.

The weights that a group uses are numbered without gaps. On the source's side, so are the targets whose deltas the group reads. Runs refer
to these local numbers. *theta* is the array of a connection's weights, followed by its biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.indexed_maps import IndexedMap
from snnc.compiler.tiles.blocks.grouping import Ints, places_within

SPARSE: Final = 4
"""Rows are found by keys if, summed over groups, fewer than 1 / SPARSE of the sources from a group's first to its last reach the group."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Ranges ``[first, first + count)`` of an array that groups use; `group` contains the index of each group's first range."""

    group: Ints
    first: Ints
    count: Ints

    @property
    def sizes(self) -> Ints:
        """Number of elements that each group uses."""
        return _sums(self.count, self.group)

    def sizes_from(self, element: int) -> Ints:
        """Return the number of elements with index `element` or higher that each group uses."""
        return _sums(np.clip(self.first + self.count - element, 0, self.count), self.group)


@dataclass(frozen=True)
class TableForm:
    """Properties of tables that determine the code of the vertices that read them.

    `single`: every run has one value; `keyed`: rows are found by their keys; `index_bytes`: bytes of a number in a table.
    """

    single: bool
    keyed: bool = False
    index_bytes: int = 2


@dataclass(frozen=True, eq=False)
class IndexTables:
    """Tables of all groups; runs are ordered by group, row and target."""

    low: Ints
    span: Ints
    """First row of each group, and the number of its rows. A row is a source on the target's side, and a neuron of the group on the
    source's side."""
    keys: Ints
    """Sources with a row, in ascending order, if rows are found by keys; `low` is then 0. Empty if every source from the group's first to
    its last source has a row."""
    rows: Ints
    """Row offsets, ``span + 1`` per group: the index in the group of the first run of each row, and the number of runs. Biases are an
    additional last row, which makes ``span + 2`` offsets."""
    row_start: Ints
    run_start: Ints
    """Index of a group's first offset in `rows`, and of its first run in the three arrays below. The last element is the length of these
    arrays."""
    first_target: Ints
    first_weight: Ints
    length: Ints
    """First target and first weight of each run, as local numbers, and its number of values. If the map takes a maximum, as in max
    pooling, `first_weight` is the number of the entry among those of its target."""
    used: Pieces
    """Elements of theta that each group uses."""
    targets: Pieces
    """Targets that each group reads on the source's side; empty on the target's side."""
    has_bias_row: bool
    """Whether groups have a row of biases."""
    inputs: int
    """Number of values of the source."""
    weights: int
    """Number of elements of theta that are not biases."""

    @property
    def extent(self) -> tuple[Ints, Ints]:
        """First source with a row, and last source with a row plus 1, of each group; on the source's side, neurons of the group."""
        if not self.keyed:
            return self.low, self.low + self.span
        begin, last = self.key_start[:-1], self.key_start[1:] - 1
        nonempty, keys = self.span > 0, np.append(self.keys, 0)
        return np.where(nonempty, keys[np.minimum(begin, len(self.keys))], 0), np.where(nonempty, keys[last] + 1, 0)

    @property
    def rows_by_source(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Group, source, number of runs, and number of values of every row, except rows of biases."""
        group = np.repeat(np.arange(len(self.span)), self.span)
        index = places_within(self.span)
        source = self.keys if self.keyed else self.low[group] + index
        begin, end = (self.run_start[group] + self.rows[self.row_start[group] + index + i] for i in (0, 1))
        values = np.concatenate([[0], np.cumsum(self.length)])
        return group, source, end - begin, values[end] - values[begin]

    @property
    def runs(self) -> Ints:
        """Number of runs of each group."""
        return np.diff(self.run_start)

    @property
    def elements(self) -> Ints:
        """Number of values in all runs of each group."""
        return _sums(self.length, self.run_start)

    @property
    def single(self) -> bool:
        """Whether every run has one value."""
        return bool((self.length == 1).all())

    @property
    def keyed(self) -> bool:
        """Whether rows are found by their keys."""
        return len(self.keys) > 0

    @property
    def key_start(self) -> Ints:
        """Index of the first key of each group."""
        return np.concatenate([[0], np.cumsum(self.span)]) if self.keyed else np.zeros(len(self.span) + 1, np.int64)

    @cached_property
    def form(self) -> TableForm:
        """Properties of these tables that determine code."""
        largest = max(int(indices.max(initial=0)) for indices in (self.keys, self.rows, self.first_target, self.first_weight, self.length))
        return TableForm(self.single, self.keyed, 2 if largest < 1 << 16 else 4)

    @property
    def index_count(self) -> Ints:
        """Number of indices in the tables of each group."""
        return np.diff(self.row_start) + np.diff(self.key_start) + (2 if self.single else 3) * self.runs


@dataclass(frozen=True, eq=False)
class _Entries:
    group: Ints
    row: Ints
    target: Ints
    weight: Ints
    length: Ints


def target_tables(indexed: IndexedMap, first: Ints, count: Ints) -> IndexTables:
    """Cut `indexed` along the target's groups ``[first, first + count)``, which are ascending and do not overlap."""
    entries = _clipped(indexed, first, count)
    plain = entries.row < indexed.inputs
    group, source = entries.group[plain], entries.row[plain]
    low, high = _extent(group, source, len(first))
    span, keys, index = high - low, np.zeros(0, np.int64), source - low[group]
    fresh = np.ones(len(group), bool)
    fresh[1:] = (np.diff(group) != 0) | (np.diff(source) != 0)
    if SPARSE * np.count_nonzero(fresh) < span.sum():
        low, keys, span = np.zeros_like(low), source[fresh], np.bincount(group[fresh], minlength=len(first))
        index = np.cumsum(fresh) - 1 - (np.cumsum(span) - span)[group]
    row = span[entries.group]
    row[plain] = index
    merged = _merged(_Entries(entries.group, row, entries.target - first[entries.group], entries.weight, entries.length))
    return _tables(indexed, merged, (low, span, keys), has_bias_row=indexed.biases > 0, targets=_nothing(len(first)))


def source_tables(indexed: IndexedMap, first: Ints, count: Ints) -> IndexTables:
    """Cut `indexed` along the source's groups ``[first, first + count)``, which are ascending and do not overlap; biases are omitted."""
    begin, end = (np.searchsorted(indexed.source, np.minimum(edge, indexed.inputs), side="left") for edge in (first, first + count))
    group = np.repeat(np.arange(len(first)), end - begin)
    inside = _ranges(begin, end - begin)
    units, each = indexed.target[inside] // indexed.length, indexed.outputs // indexed.length
    numbered, targets = _numbered(group * each + units, each, len(first), indexed.length)
    entries = _Entries(
        group, indexed.source[inside] - first[group], numbered * indexed.length, indexed.weight[inside], np.full(len(group), indexed.length)
    )
    rows = (np.zeros_like(first), count, np.zeros(0, np.int64))
    return _tables(indexed, _merged(entries), rows, has_bias_row=False, targets=targets)


def _clipped(indexed: IndexedMap, first: Ints, count: Ints) -> _Entries:
    """Assign entries to the groups of their targets; an entry that reaches several groups is split."""
    stop = first + count
    every = np.arange(indexed.outputs + 1)  # targets are fewer than entries, so search once for each target
    begin = np.searchsorted(stop, every, side="right")[indexed.target]
    end = np.searchsorted(first, every, side="left")[indexed.target + indexed.length]
    reached = np.flatnonzero(end > begin)
    number = (end - begin)[reached]
    entry = np.repeat(reached, number)
    group = _ranges(begin[reached], number)
    order = stable_order(group, len(first))
    entry, group = entry[order], group[order]
    target = np.maximum(indexed.target[entry], first[group])
    skipped = target - indexed.target[entry]
    length = np.minimum(indexed.target[entry] + indexed.length, stop[group]) - target
    return _Entries(group, indexed.source[entry], target, indexed.weight[entry] + skipped, length)


def _ranges(first: Ints, count: Ints) -> Ints:
    return places_within(count) + np.repeat(first, count)


def _extent(group: Ints, row: Ints, groups: int) -> tuple[Ints, Ints]:
    """Return the smallest row of each group, and the largest plus 1; 0 and 0 for a group without rows."""
    low, high = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    begin = np.searchsorted(group, np.arange(groups), side="left")
    end = np.searchsorted(group, np.arange(groups), side="right")
    nonempty = end > begin
    low[nonempty], high[nonempty] = row[begin[nonempty]], row[end[nonempty] - 1] + 1
    return low, high


def _merged(entries: _Entries) -> _Entries:
    e = entries
    if not len(e.group):
        return e
    follows = (
        (e.group[1:] == e.group[:-1])
        & (e.row[1:] == e.row[:-1])
        & (e.target[1:] == e.target[:-1] + e.length[:-1])
        & (e.weight[1:] == e.weight[:-1] + e.length[:-1])
    )
    first = np.flatnonzero(np.concatenate([[True], ~follows]))
    return _Entries(e.group[first], e.row[first], e.target[first], e.weight[first], np.add.reduceat(e.length, first))


def _tables(indexed: IndexedMap, runs: _Entries, shape: tuple[Ints, Ints, Ints], *, has_bias_row: bool, targets: Pieces) -> IndexTables:
    low, span, keys = shape
    groups = len(low)
    run_start = np.searchsorted(runs.group, np.arange(groups + 1), side="left")
    row_start = np.concatenate([[0], np.cumsum(span + 1 + has_bias_row)])
    row_number = np.arange(row_start[-1]) - np.repeat(row_start[:-1], np.diff(row_start))
    of_group = np.repeat(np.arange(groups), np.diff(row_start))
    row_limit = int(span.max(initial=0)) + 2
    rows = np.searchsorted(runs.group * row_limit + runs.row, of_group * row_limit + row_number, side="left") - run_start[of_group]
    local, used = (runs.weight, _nothing(groups)) if indexed.maximum else _used(runs, groups, indexed.elements)
    of_map = has_bias_row, indexed.inputs, indexed.weights
    return IndexTables(low, span, keys, rows, row_start, run_start, runs.target, local, runs.length, used, targets, *of_map)


def _used(runs: _Entries, groups: int, elements: int) -> tuple[Ints, Pieces]:
    """Number the elements of theta that each group uses, and return the first number of each run; runs remain contiguous."""
    spread = np.repeat(runs.group * elements + runs.weight, runs.length) + places_within(runs.length)
    numbered, pieces = _numbered(spread, elements, groups, 1)
    return numbered[np.cumsum(runs.length) - runs.length], pieces


def _numbered(keys: Ints, each: int, groups: int, unit: int) -> tuple[Ints, Pieces]:
    """Number the distinct `keys` of every group without gaps; a key is ``group * each + index``.

    Return the number of each key, and the ranges of ``index * unit`` that each group uses.
    """
    order = stable_order(keys, groups * each)
    ascending = keys[order]
    fresh = np.append(True, np.diff(ascending) != 0)[: len(keys)]
    distinct, place = ascending[fresh], np.empty(len(keys), np.int64)
    place[order] = np.cumsum(fresh) - 1
    of_group, index = np.divmod(distinct, max(each, 1))
    begin = np.searchsorted(of_group, np.arange(groups + 1), side="left")
    local = place - begin[of_group[place]]
    starts = np.ones(len(distinct), bool)
    starts[1:] = (np.diff(index) != 1) | (np.diff(of_group) != 0)
    first = np.flatnonzero(starts)
    count = np.diff(np.append(first, len(distinct)))
    start = np.searchsorted(of_group[first], np.arange(groups + 1), side="left")
    return local, Pieces(start, index[first] * unit, count * unit)


def stable_order(keys: Ints, bound: int) -> Ints:
    """Return the stable ascending order of `keys`, which are at least 0 and less than `bound`.

    NumPy sorts 16-bit integers by counting their digits, which is several times faster than a comparison sort of 64-bit integers.

    Examples
    --------
    >>> stable_order(np.array([2, 70000, 2, 1]), 70001).tolist()
    [3, 0, 2, 1]
    """
    order: Ints = np.argsort(keys.astype(np.uint16), kind="stable")  # the digits of the lowest 16 bits
    for shift in range(16, max(bound - 1, 0).bit_length(), 16):
        order = order[np.argsort((keys >> shift).astype(np.uint16)[order], kind="stable")]
    return order


def _nothing(groups: int) -> Pieces:
    empty = np.zeros(0, np.int64)
    return Pieces(np.zeros(groups + 1, np.int64), empty, empty)


def _sums(values: Ints, start: Ints) -> Ints:
    total = np.concatenate([[0], np.cumsum(values)])
    sums: Ints = total[start[1:]] - total[start[:-1]]
    return sums
