"""Owners of the weights of indexed connections under a placement, and the tiles that use these weights.

An indexed connection (a convolution, for example) is stored as tables, and several tiles may use one weight. The owner of the weight is the
tile that sums its gradients and updates it. A tile may own several ranges of weights; arrays named `owner` contain indices of ranges in
:attr:`Ownership.owners`, not numbers of tiles. Elements are numbered weights first, then biases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from snnc.compiler.ir.arrays.sizes import FLOAT, HALF
from snnc.compiler.tiles.blocks.grouping import Bools, Ints, column_groups, places_within
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.indexed.indexed_links import IndexedLink, Side
from snnc.compiler.tiles.indexed.owners import Owners, find_owners
from snnc.compiler.tiles.mapped.network import Link


@dataclass(frozen=True, eq=False)
class Ownership:
    """Owners of an indexed connection's weights, and the column groups (here *groups*) that use the weights."""

    link: Link
    indexed: IndexedLink
    target: TileRange
    source: TileRange | None
    """Tile range of the target, and of the source if its tiles store copies of weights to compute the adjoints of its outputs."""

    @cached_property
    def owners(self) -> Owners:
        """The owners of the weights."""
        where, tables = self.target, self.indexed.on_tiles.tables("target", self.target)
        return find_owners(
            self.indexed.map, tables.used, where.starts[0] + group_tiles(where), np.sort(where.tiles),
            weight_learns=self.indexed.weight_learns, bias_learns=self.indexed.bias_learns,
        )  # fmt: skip

    @cached_property
    def halves(self) -> Bools:
        """For each owner, whether its elements are float16: weights may be float16, biases are float32."""
        return (self.owners.first < self.indexed.map.weights) & self.link.half

    @cached_property
    def sizes(self) -> Ints:
        """For each owner, the bytes of one of its elements."""
        return np.where(self.halves, HALF, FLOAT).astype(np.int64)

    @property
    def sides(self) -> dict[Side, TileRange]:
        """Tile ranges of the populations whose groups use the weights."""
        return {"target": self.target} if self.source is None else {"target": self.target, "source": self.source}

    @cached_property
    def pieces(self) -> dict[Side, tuple[Ints, Ints, Ints, Ints]]:
        """By side: group, owner, first element and number of elements of every piece that a replica's group receives from an owner."""
        return {side: self._pieces(side, where) for side, where in self.sides.items()}

    def uses(self, side: Side) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield, for each replica, the tile, the owner and the number of elements of every piece that a group receives from an owner."""
        where, (group, owner, _, elements) = self.sides[side], self.pieces[side]
        tile = group_tiles(where)[group]
        for start in where.starts:
            yield start + tile, owner, elements

    def joined(self, side: Side, uses: tuple[Ints, Ints, Ints], single: Bools | None = None) -> Bools:
        """Return, for each of a replica's `uses` (as :meth:`uses` yields), whether it is sent in one fragment with the previous use.

        This requires that the two uses have the same sender and the same receiver, and are adjacent in the memory of the sender. Without
        `single`, owners send weights; they store elements in ascending order. With `single`, groups send gradients; `single` is True for
        tiles whose groups have one block each. On other tiles, the private sums of further blocks lie between the groups.
        """
        tile, owner, _ = uses
        home, (group, _, first, elements) = self.owners.tile[owner], self.pieces[side]
        if single is None:
            # Float16 weights of an owner fill whole words, and biases are in a different array.
            apart = self.halves[owner[:-1]] & (~self.halves[owner[1:]] | (self.owners.count[owner[:-1]] % 2 == 1))
            follows = (np.diff(first) == elements[:-1]) & ~(apart & (np.diff(owner) != 0))
        else:
            follows = (np.diff(group) == 0) | single[group_tiles(self.sides[side])[group[:-1]]]
        in_one_fragment = np.zeros(len(tile), dtype=bool)
        in_one_fragment[1:] = follows & (np.diff(tile) == 0) & (np.diff(home) == 0)
        return in_one_fragment

    def _pieces(self, side: Side, where: TileRange) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the pieces that column groups exchange with owners: group, owner, first element, and number of elements of each."""
        used = self.indexed.on_tiles.tables(side, where).used
        group = np.repeat(np.arange(len(used.group) - 1), np.diff(used.group))
        begin = np.searchsorted(self.owners.first, used.first, side="right") - 1
        end = np.searchsorted(self.owners.first, used.first + used.count, side="left")
        piece = np.repeat(np.arange(len(begin)), end - begin)
        owner = places_within(end - begin) + begin[piece]
        first, last = self.owners.first[owner], (self.owners.first + self.owners.count)[owner]
        begin = np.maximum(used.first[piece], first)
        return group[piece], owner, begin, np.minimum((used.first + used.count)[piece], last) - begin


def group_tiles(where: TileRange) -> Ints:
    """Return the tile of each group of a replica, as an index in the replica."""
    return np.repeat(np.arange(where.width), column_groups(where.neurons, where.columns))
