"""Distribution of tiles to populations that minimises the time of a step: the time of its slowest tile, summed over the parts of the step.

With b_p the bound on the tile cycles of part p (forward, backward, …), every population l gets the fewest tiles on which no part exceeds
its bound::

    min  sum_p b_p      with   sum_l tiles_l(b) <= tiles,    tiles_l(b) = min { tiles : parts_l <= b }

The search starts from the bounds of a first solution, moves one bound at a time by a factor, and scales all bounds together until the tiles
fit again; changes that reduce the sum are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, TypeVar

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Floats, Ints, ceil_div
from snnc.compiler.tiles.memo import Memo
from snnc.compiler.tiles.placement.choices import Allocation, Choice

T = TypeVar("T")
FACTORS: Final = (0.7, 0.85, 0.95, 1.05, 1.2, 1.5)
"""Factors by which one bound is moved relative to the others."""
ROUNDS: Final = 6
"""Maximum number of rounds in which all bounds are moved."""
SCALES: Final = (0.5, 1.6)
"""Range in which the search looks for the smallest multiple of all bounds with which the populations fit on the tiles."""
BISECTIONS: Final = 9
"""Number of bisections of the range :data:`SCALES`; the resolution is 0.002."""
WORTH: Final = 0.999
"""A sum of bounds smaller than this fraction of the present sum counts as an improvement."""
AT_ONCE: Final = 64
"""Number of allocations compared at a time in the search for Pareto-optimal ones."""


@dataclass(frozen=True, eq=False)
class AllocationTable:
    """Allocations of a population, sorted by tiles, then cycles: each choice, on the fewest tiles for each maximum of neurons per tile."""

    choices: Sequence[Choice]
    tiles: Ints
    """Number of tiles of each allocation, over all replicas."""
    parts: Floats
    """Cycles by part of the step, [parts, allocations]."""
    choice: Ints
    width: Ints
    """Index in `choices`, and number of tiles of one replica, for each allocation."""

    @cached_property
    def cycles(self) -> Floats:
        """Cycles of each allocation, summed over parts and rounded up."""
        total: Floats = np.ceil(self.parts.sum(axis=0))
        return total

    @cached_property
    def pareto(self) -> AllocationTable:
        """The Pareto-optimal allocations: every other one with at most as many tiles needs more cycles in some part of the step."""
        rows = _pareto_rows(self.parts.T)
        return AllocationTable(self.choices, self.tiles[rows], self.parts[:, rows], self.choice[rows], self.width[rows])

    @classmethod
    def of(cls, choices: Sequence[Choice]) -> AllocationTable:
        """Tabulate the allocations of a population."""
        tiles, parts, index, widths = [], [], [], []
        for number, choice in enumerate(choices):
            width = np.unique(ceil_div(choice.neurons, np.arange(1, choice.fit + 1)))
            tiles.append(choice.cut.replicas * width)
            parts.append(choice.parts[:, ceil_div(choice.neurons, width) - 1])
            index.append(np.full(len(width), number))
            widths.append(width)
        all_tiles, all_parts = np.concatenate(tiles), np.concatenate(parts, axis=1)
        order = np.lexsort((all_parts.sum(axis=0), all_tiles))
        return cls(choices, all_tiles[order], all_parts[:, order], np.concatenate(index)[order], np.concatenate(widths)[order])


def cached_table(tables: Memo, choices: Sequence[Choice]) -> AllocationTable:
    """Return the table of a list of choices, which populations with the same structure share."""
    return tables.get(id(choices), partial(AllocationTable.of, choices))


def bisect(low: float, high: float, attempt: Callable[[float], T | None], most: int, close: float = 1.0) -> T | None:
    """Return the result of `attempt` for the smallest bound with a result (not None) in [`low`, `high`]; None if `high` has none.

    The search ends after `most` bisections, or if the ratio of the limits is at most `close`.
    """
    best = attempt(high)
    for _ in range(most if best is not None else 0):
        if high <= low * close:
            break
        middle = (low + high) / 2
        result = attempt(middle)
        if result is None:
            low = middle
        else:
            best, high = result, middle
    return best


def _pareto_rows(cycles: Floats) -> list[int]:
    """Return the rows of `cycles`, [allocations, parts], for which every earlier row is larger in some part."""
    pareto: list[int] = []
    for first in range(0, len(cycles), AT_ONCE):
        compared = cycles[first : first + AT_ONCE]
        worse = (cycles[pareto][:, None] <= compared).all(axis=2).any(axis=0)
        new: list[int] = []
        for n in np.flatnonzero(~worse).tolist():
            if not (compared[new] <= compared[n]).all(axis=1).any():
                new.append(n)
        pareto += [first + n for n in new]
    return pareto


class Balance:
    """Balances populations on one range of tiles.

    Populations with one *structure* share one list of choices, and get one allocation, which is Pareto-optimal.
    """

    def __init__(self, options: Sequence[Sequence[Choice]], tables: Memo) -> None:
        self._options = options
        structures = {id(choices): choices for choices in options}
        self._place = {key: place for place, key in enumerate(structures)}
        self._members = np.bincount([self._place[id(choices)] for choices in options])
        pareto = [cached_table(tables, choices).pareto for choices in structures.values()]
        columns = [(table.tiles, table.parts, table.choice, table.width) for table in pareto]
        # The allocations of all structures, structure by structure, sorted by tiles; parts are [parts, allocations].
        self._tiles, self._parts, self._choice, self._width = (np.concatenate(arrays, axis=-1) for arrays in zip(*columns, strict=True))
        self._starts = np.cumsum([0, *(len(table.tiles) for table in pareto[:-1])])

    def improve(self, allocations: Sequence[Allocation], tiles: int) -> list[Allocation]:
        """Return allocations on at most `tiles` tiles with which a step takes no longer than with `allocations`.

        The time of a step is the sum, over its parts, of the cycles of the slowest tile.
        """
        best = np.array([allocation.choice.parts[:, allocation.neurons - 1] for allocation in allocations]).max(axis=0)
        best_rows: Ints | None = None
        for _ in range(ROUNDS):
            before = best.sum()
            for part in np.argsort(-best):
                for factor in FACTORS:
                    moved = best.copy()
                    moved[part] *= factor
                    scaled = bisect(*SCALES, partial(self._fitting, self._multiples(moved), tiles), BISECTIONS)
                    if scaled is None:
                        continue
                    bounds = self._parts[:, scaled].max(axis=1)
                    if bounds.sum() < WORTH * best.sum():
                        best, best_rows = bounds, scaled
            if best.sum() >= WORTH * before:
                break
        if best_rows is None:
            return list(allocations)
        choice, width = self._choice[best_rows].tolist(), self._width[best_rows].tolist()
        places = (self._place[id(choices)] for choices in self._options)
        return [Allocation(choices[choice[place]], width[place]) for choices, place in zip(self._options, places, strict=True)]

    def _multiples(self, bounds: Floats) -> Floats:
        """Return, for each allocation, the smallest multiple of `bounds` that the allocation satisfies."""
        with np.errstate(divide="ignore", invalid="ignore"):
            largest: Floats = np.where(self._parts > 0, self._parts / bounds[:, None], 0.0).max(axis=0)
        return largest

    def _fitting(self, multiples: Floats, tiles: int, scale: float) -> Ints | None:
        """Return the index of the first allocation of each structure with a multiple up to `scale`; None if `tiles` do not suffice."""
        inside = (multiples <= scale).nonzero()[0]
        at = inside.searchsorted(self._starts)
        if at[-1] == len(inside):
            return None
        first = inside[at]
        each_has_one = not (first[:-1] >= self._starts[1:]).any()
        return first if each_has_one and int(self._tiles[first] @ self._members) <= tiles else None
