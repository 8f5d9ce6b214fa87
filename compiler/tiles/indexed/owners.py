"""Ownership of the weights of an indexed connection: the owner tile sums gradients, keeps moments, updates and distributes weights.

*theta* is the array of the connection's weights, followed by its biases; see :mod:`snnc.compiler.ir.arrays.indexed_maps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from snnc.compiler.ir.arrays.indexed_maps import IndexedMap
from snnc.compiler.tiles.blocks.grouping import Bools, Ints
from snnc.compiler.tiles.indexed.tables import Pieces

GRAIN: Final = 4
"""Minimum number of shared weights per owner, if there are several owners: one of few weights receives as many fragments as one of many."""
MAX_RANGES: Final = 4
"""Maximum mean number of ranges of an owner if each weight belongs to the tile that uses it; each range needs separate vertices."""


@dataclass(frozen=True, eq=False)
class Owners:
    """Consecutive ranges ``[first, first + count)`` that cover theta once: `tile` owns a range, and updates it if it is `learned`."""

    tile: Ints
    first: Ints
    count: Ints
    learned: Bools

    def table(self) -> Ints:
        """Return [ranges, 4]: tile, first, count, learned."""
        return np.stack([self.tile, self.first, self.count, self.learned.astype(np.int64)], axis=1)


def find_owners(indexed: IndexedMap, used: Pieces, group_tiles: Ints, tiles: Ints, *, weight_learns: bool, bias_learns: bool) -> Owners:
    """Assign the elements of theta to owner tiles, weights first, then biases.

    If no two groups use the same weight, each weight is owned by the tile of the group that uses it. Otherwise, or if this would need more
    than :data:`MAX_RANGES` ranges per owner on average, all weights are distributed evenly over `tiles`, those of the population that reads
    the connection. The same holds for biases. `used` contains the elements that each column group of that population's first replica uses,
    `group_tiles` the tiles of these groups.
    """
    group = np.repeat(np.arange(len(group_tiles)), np.diff(used.group))
    parts = []
    for begin, end, learns in ((0, indexed.weights, weight_learns), (indexed.weights, indexed.elements, bias_learns)):
        inside = (used.first < end) & (used.first + used.count > begin)
        first = np.maximum(used.first[inside], begin)
        count = np.minimum((used.first + used.count)[inside], end) - first
        if end > begin:
            tile, start, size = _owned_by_users(first, count, group_tiles[group[inside]], begin, end) or _even(begin, end, tiles)
            parts.append(Owners(tile, start, size, np.full(len(tile), learns)))
    return Owners(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("tile", "first", "count", "learned")))


def _owned_by_users(first: Ints, count: Ints, tile: Ints, begin: int, end: int) -> tuple[Ints, Ints, Ints] | None:
    """Make the tile of each group the owner of its weights, and of unused weights after them.

    Return None if groups share a weight, or if this needs too many ranges (:data:`MAX_RANGES`).
    """
    order = np.argsort(first, kind="stable")
    first, count, tile = first[order], count[order], tile[order]
    if not len(first) or (first[1:] < (first + count)[:-1]).any() or len(first) > MAX_RANGES * len(np.unique(tile)):
        return None
    stop = np.append(first[1:], end)
    first[0] = begin
    return tile, first, stop - first


def owner_count(elements: int, tiles: int) -> int:
    """Return the number of owners of `elements` shared weights."""
    return max(1, min(elements // GRAIN, tiles))


def _even(begin: int, end: int, tiles: Ints) -> tuple[Ints, Ints, Ints]:
    parts = owner_count(end - begin, len(tiles))
    bounds = begin + np.arange(parts + 1) * (end - begin) // parts
    return tiles[np.arange(parts) * len(tiles) // parts], bounds[:-1], np.diff(bounds)
