"""Sizes of an indexed map's tables on each tile: exact for one cut, or estimated for any number of neurons on a tile.

An indexed map is a connection that is not dense, such as a convolution, as a list of entries (source, target, weight). A tile has tables
with the entries of its own neurons, one for each of its column groups (here *groups*). A *run* is a sequence of adjacent entries of a row
(:mod:`snnc.compiler.tiles.indexed.tables`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Floats, Ints
from snnc.compiler.tiles.indexed.tables import IndexTables
from snnc.compiler.tiles.memo import Memo

Cutter: TypeAlias = Callable[[Ints, Ints], IndexTables]
"""Function that builds tables for groups of neurons; its arguments are the first neuron and the number of neurons of each group."""

_NAMES: Final = "span keys reach searched ended singles runs values bias_singles bias_runs bias_values size biases bytes read pieces"
AMOUNTS: Final = tuple(_NAMES.split())
"""Names of the sizes that :class:`TableAmounts` explains."""
REMEMBERED: Final = 4
"""Maximum number of results that a profile caches; a search alternates between few."""
SIZES: Final = 10
"""Number of group sizes that a profile measures."""
SAMPLED: Final = 16
"""Maximum number of groups of each size that a profile measures."""


@dataclass(frozen=True, eq=False)
class TableAmounts:
    """Sizes of the tables on tiles, by name; each size is a number or an array over tiles.

    The sizes are numbers of:

    * `span`: rows; `keys`: rows found by key (their source); `reach`: sources from the first one with a row to the last one with a row;
    * `searched`, `ended`: groups for which sources come before the first one with a row, or after the last one (1 or 0 in one group);
    * `singles`, `runs`, `values`: runs of one value, longer runs, and the values of both; biases are not included;
    * `bias_singles`, `bias_runs`, `bias_values`: the same three sizes for biases;
    * `size`: weights and biases that are used; `biases`: the biases among them; `bytes`: bytes of the tables;
    * `read`, `pieces`: targets whose deltas are read, and contiguous ranges of these targets.
    """

    largest: dict[str, Any]
    """The largest value of each size in any group of a tile."""
    total: dict[str, Any]
    """The sum of each size over all groups of a tile."""


def amounts(tables: IndexTables, rate: Floats | None = None) -> dict[str, Any]:
    """Return the sizes of every group's tables, by name.

    `rate` is the event rate of each source, divided by the mean of all. With it, `span`, `reach`, and the numbers of runs and values
    (without those of biases) are weighted by the rates of their sources.
    """
    runs, values = tables.runs, tables.elements
    bias_runs = bias_values = np.zeros_like(runs)
    if tables.has_bias_row:
        first_bias = tables.rows[tables.row_start[1:] - 2] + tables.run_start[:-1]  # biases are the last row of a group
        bias_runs = tables.run_start[1:] - first_bias
        total = np.concatenate([[0], np.cumsum(tables.length)])
        bias_values = total[tables.run_start[1:]] - total[first_bias]
    nothing, single = np.zeros_like(runs), tables.single
    low, high = tables.extent
    reach: Any = high - low
    rows: Any = tables.span
    plain: Any = runs - bias_runs
    sums: Any = values - bias_values
    if rate is not None:
        rows, plain, sums = _by_rate(tables, rate)
        before = np.concatenate([[0.0], np.cumsum(rate)])
        reach = before[high] - before[low]
    return {
        "span": rows,
        "keys": np.diff(tables.key_start),
        "reach": reach,
        "searched": (low > 0).astype(np.int64),
        "ended": (high < tables.inputs).astype(np.int64),
        "singles": plain if single else nothing,
        "runs": nothing if single else plain,
        "values": sums,
        "bias_singles": bias_runs if single else nothing,
        "bias_runs": nothing if single else bias_runs,
        "bias_values": bias_values,
        "size": tables.used.sizes,
        "biases": tables.used.sizes_from(tables.weights),
        "bytes": tables.form.index_bytes * tables.index_count,
        "read": tables.targets.sizes,
        "pieces": np.diff(tables.targets.group),
    }


def _by_rate(tables: IndexTables, rate: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the rows, runs and values of every group, without biases, weighted by the rates of their sources."""
    group, source, runs_of_row, values_of_row = tables.rows_by_source
    counts, groups = (1.0, runs_of_row, values_of_row), len(tables.span)
    rows, runs, values = (np.bincount(group, rate[source] * count, groups).astype(np.float64) for count in counts)
    return rows, runs, values


def held_exactly(of_groups: dict[str, Any], groups: Ints) -> TableAmounts:
    """Return the sizes for each tile from those for each group, which are ordered by tile; tile i has ``groups[i]`` groups."""
    start = np.concatenate([[0], np.cumsum(groups)[:-1]])
    return TableAmounts(
        {name: np.maximum.reduceat(values, start) for name, values in of_groups.items()},
        {name: np.add.reduceat(values, start) for name, values in of_groups.items()},
    )


@dataclass(frozen=True, eq=False)
class Profile:
    """Largest amounts of the measured groups, for several group sizes in ascending order.

    ``largest[a, i]`` is the largest amount a of :data:`AMOUNTS` in groups of ``sizes[i]`` neurons.
    """

    sizes: Ints
    largest: Floats
    _known: Memo = field(default_factory=lambda: Memo(REMEMBERED))

    def held(self, neurons: Any, groups: Any) -> TableAmounts:
        """Estimate the amounts of tiles whose `neurons` neurons are cut into `groups` groups."""
        each, number = np.asarray(-(-np.asarray(neurons) // np.maximum(groups, 1)), np.int64), np.asarray(groups)
        return self._known.get((_bytes(each), _bytes(number)), lambda: self._between(each, number))

    def _between(self, each: Ints, number: Ints) -> TableAmounts:
        """Return the amounts of `number` groups of `each` neurons, interpolated between the measured sizes."""
        last = len(self.sizes) - 1
        below = np.clip(np.searchsorted(self.sizes, each, side="right") - 1, 0, max(last - 1, 0))
        above = np.minimum(below + 1, last)
        step = np.maximum(self.sizes[above] - self.sizes[below], 1)
        share = np.clip((each - self.sizes[below]) / step, 0.0, 1.0)
        values = self.largest[:, below] * (1 - share) + self.largest[:, above] * share
        return TableAmounts(dict(zip(AMOUNTS, values, strict=True)), dict(zip(AMOUNTS, values * number, strict=True)))


def _bytes(array: Ints | Floats) -> bytes:
    return array.tobytes() + repr(array.shape).encode()


def measure(cutter: Cutter, neurons: int) -> Profile:
    """Measure the tables of a population of `neurons` neurons, for several group sizes and a sample of the groups of each size."""
    sizes = np.unique(np.geomspace(1, neurons, SIZES).round().astype(np.int64))
    largest = []
    for size in sizes:
        number = -(-neurons // int(size))
        chosen = np.unique(np.linspace(0, number - 1, min(number, SAMPLED)).round().astype(np.int64))
        first = chosen * size
        measured = amounts(cutter(first, np.minimum(size, neurons - first)))
        largest.append([float(measured[name].max()) for name in AMOUNTS])
    return Profile(sizes, np.array(largest).T)
