"""Numbers of tiles per population that minimise the step, not only the time of the busiest tile.

A step is made of parts (forward, backward, …), each a superstep that waits for its slowest tile. With b_p the bound on part p, every
population takes the fewest tiles on which no part exceeds its bound. The search looks for bounds with the smallest sum whose tiles fit::

    min  sum_p b_p      with   sum_l tiles_l(b) <= tiles,    tiles_l(b) = min { tiles : parts_l <= b }

Starting from the bounds of a first answer, one bound at a time is moved by a factor and all are scaled together until the tiles fit again;
changes that reduce the sum are kept. The result is a local minimum in this neighbourhood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from snnc.compiler.tiles.placement.choices import Choice, Take
from snnc.compiler.tiles.placement.grouping import Floats, Ints, ceil_div

FACTORS: Final = (0.7, 0.85, 0.95, 1.05, 1.2, 1.5)
"""Factor by which one bound is moved against the others."""
ROUNDS: Final = 6
"""Number of rounds in which all bounds are moved."""
SCALES: Final = (0.5, 1.6)
"""Multiples of moved bounds among which the smallest that fits is searched."""
BISECTIONS: Final = 9
"""Resolution of the multiples: two thousandths."""
WORTH: Final = 0.999
"""Minimum fraction of the sum that counts as an improvement."""

AT_ONCE: Final = 64
"""Takes of which those that are no worse than others are sought at a time."""


@dataclass(frozen=True, eq=False)
class OrderedTakes:
    """Every take of a population, ordered by tiles, then by cycles: one for every width required by some number of neurons on a tile."""

    some: Sequence[Choice]
    tiles: Ints
    parts: Floats
    """Cycles [parts][takes]."""
    choice: Ints
    width: Ints

    @cached_property
    def cycles(self) -> Floats:
        """Whole cycles of all parts of each."""
        found: Floats = np.ceil(self.parts.sum(axis=0))
        return found

    @cached_property
    def worth(self) -> OrderedTakes:
        """Those than which no other needs as few tiles and as few cycles in all parts."""
        rows = _not_worse(self.parts.T)
        return OrderedTakes(self.some, self.tiles[rows], self.parts[:, rows], self.choice[rows], self.width[rows])

    def take(self, row: int) -> Take:
        """Return the take in a row."""
        return Take(self.some[int(self.choice[row])], int(self.width[row]))

    @classmethod
    def of(cls, some: Sequence[Choice]) -> OrderedTakes:
        """Tabulate the takes of a population."""
        tiles, parts, index, widths = [], [], [], []
        for number, choice in enumerate(some):
            width = np.unique(ceil_div(choice.neurons, np.arange(1, choice.fit + 1)))
            tiles.append(choice.cut.replicas * width)
            parts.append(choice.parts[:, ceil_div(choice.neurons, width) - 1])
            index.append(np.full(len(width), number))
            widths.append(width)
        all_tiles, all_parts = np.concatenate(tiles), np.concatenate(parts, axis=1)
        order = np.lexsort((all_parts.sum(axis=0), all_tiles))
        return cls(some, all_tiles[order], all_parts[:, order], np.concatenate(index)[order], np.concatenate(widths)[order])


def _not_worse(busiest: Floats) -> list[int]:
    """Rows of [takes, parts] than which no row in front is as small in all parts."""
    kept: list[int] = []
    for first in range(0, len(busiest), AT_ONCE):
        some = busiest[first : first + AT_ONCE]
        worse = (busiest[kept][:, None] <= some).all(axis=2).any(axis=0)
        new: list[int] = []
        for n in np.flatnonzero(~worse).tolist():
            if not (some[new] <= some[n]).all(axis=1).any():
                new.append(n)
        kept += [first + n for n in new]
    return kept


class TakeTables:
    """Takes of populations; those of one structure share a list of choices, and a table."""

    def __init__(self) -> None:
        self._known: dict[int, OrderedTakes] = {}

    def of(self, some: Sequence[Choice]) -> OrderedTakes:
        """Return the takes of a population, tabulated once."""
        if id(some) not in self._known:
            self._known[id(some)] = OrderedTakes.of(some)
        return self._known[id(some)]


@dataclass(frozen=True, eq=False)
class _Takes:
    """Takes of all structures that are worth it, structure after structure, those of the fewest tiles first."""

    tiles: Ints
    parts: Floats
    """Cycles [parts][takes]."""
    choice: Ints
    width: Ints
    starts: Ints
    """Where each structure begins."""

    @classmethod
    def of(cls, ordered: Sequence[OrderedTakes]) -> _Takes:
        """Concatenate the takes of structures."""
        starts = np.cumsum([0, *(len(one.tiles) for one in ordered[:-1])])
        each = [(one.tiles, one.parts, one.choice, one.width) for one in ordered]
        tiles, parts, choice, width = (np.concatenate(found, axis=-1) for found in zip(*each, strict=True))
        return cls(tiles, parts, choice, width, starts)

    def multiples(self, ratio: Floats) -> Floats:
        """The factor of `ratio` that gives each take bounds it satisfies."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Floats = np.where(self.parts > 0, self.parts / ratio[:, None], 0.0).max(axis=0)
        return found

    def fewest(self, multiples: Floats, scale: float) -> Ints | None:
        """The first take of each structure within `scale` times the bounds of `multiples`; None if some structure has none."""
        inside = np.flatnonzero(multiples <= scale)
        at = np.searchsorted(inside, self.starts)
        if at[-1] == len(inside):
            return None
        first = inside[at]
        return None if (first[:-1] >= self.starts[1:]).any() else first


class Balance:
    """Populations that share some tiles; those of one structure share a list of choices, and a take."""

    def __init__(self, options: Sequence[Sequence[Choice]], tables: TakeTables | None = None) -> None:
        self._options, known = options, tables or TakeTables()
        self._place = {key: place for place, key in enumerate(dict.fromkeys(id(some) for some in options))}
        structures = {id(some): some for some in options}
        self._takes = _Takes.of([known.of(structures[key]).worth for key in self._place])
        self._members = np.bincount([self._place[id(some)] for some in options])

    def improve(self, takes: Sequence[Take], tiles: int) -> list[Take]:
        """Return takes on at most `tiles` tiles whose parts, each at its slowest population, sum up to no more than those of `takes`."""
        best = np.array([take.choice.parts[:, take.neurons - 1] for take in takes]).max(axis=0)
        found: Ints | None = None
        for _ in range(ROUNDS):
            before = best.sum()
            for part in np.argsort(-best):
                for factor in FACTORS:
                    ratio = best.copy()
                    ratio[part] *= factor
                    scaled = self._scaled(ratio, tiles)
                    if scaled is None:
                        continue
                    bounds = self._takes.parts[:, scaled].max(axis=1)
                    if bounds.sum() < WORTH * best.sum():
                        best, found = bounds, scaled
            if best.sum() >= WORTH * before:
                break
        return list(takes) if found is None else [self._take(some, int(found[self._place[id(some)]])) for some in self._options]

    def _scaled(self, ratio: Floats, tiles: int) -> Ints | None:
        """Takes within the smallest multiple of `ratio` whose tiles fit; None if even the largest does not."""
        low, high = SCALES
        multiples = self._takes.multiples(ratio)
        found = self._fitting(multiples, high, tiles)
        if found is None:
            return None
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            now = self._fitting(multiples, middle, tiles)
            if now is None:
                low = middle
            else:
                found, high = now, middle
        return found

    def _fitting(self, multiples: Floats, scale: float, tiles: int) -> Ints | None:
        found = self._takes.fewest(multiples, scale)
        return None if found is None or int(self._takes.tiles[found] @ self._members) > tiles else found

    def _take(self, some: Sequence[Choice], row: int) -> Take:
        return Take(some[int(self._takes.choice[row])], int(self._takes.width[row]))
