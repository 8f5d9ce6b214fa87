"""Indexed connections of a mapped network: their tables on tiles, and the sizes of these tables.

A tile has tables for each of its column groups, which are parts of its neurons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from snnc.compiler.ir.arrays.indexed_maps import IndexedMap, IndexedOp, indexed_map
from snnc.compiler.ir.step_program import Buffer
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, column_groups
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.indexed.holdings import TableAmounts, held_exactly
from snnc.compiler.tiles.indexed.map_cuts import MapCuts, Side
from snnc.compiler.tiles.indexed.tables import IndexTables, TableForm


@dataclass(frozen=True, eq=False)
class IndexedLink:
    """An indexed connection.

    `weight_learns` and `bias_learns` say whether training changes its weights and its biases. `cuts` contains the tables of all maps of
    the network; connections with equal maps share tables.
    """

    op: IndexedOp
    buffers: Mapping[str, Buffer]
    weight_learns: bool
    bias_learns: bool
    cuts: dict[IndexedMap, MapCuts]

    @cached_property
    def map(self) -> IndexedMap:
        """The entries of the connection: source, target and weight of each."""
        return indexed_map(self.op, self.buffers)

    @cached_property
    def _cuts(self) -> MapCuts:
        return self.cuts.setdefault(self.map, MapCuts(self.map))

    @property
    def owned(self) -> int:
        """Number of weights and biases that tiles own; 0 if they are constants, which have no owner."""
        return self.map.elements if self.map.constants is None else 0

    @property
    def values(self) -> int:
        """Number of pairs of a source value and a target that the value reaches."""
        return self.map.length * int(np.count_nonzero(self.map.source < self.map.inputs))

    def estimated(self, side: Side, neurons: Any, groups: Any) -> TableAmounts:
        """Estimate the amounts of tiles with `neurons` in `groups` column groups."""
        return (self._cuts.target if side == "target" else self._cuts.source).held(neurons, groups)

    def tables(self, side: Side, where: TileRange) -> IndexTables:
        """Return the tables of one replica of a population placed on `where`."""
        return self._cuts.tables(side, where)

    def form(self, side: Side, where: TileRange) -> TableForm:
        """Return the form of the tables of a population placed on `where`."""
        return self._cuts.form(side, where)

    def held(self, side: Side, where: TileRange, rate: Floats | None = None) -> TableAmounts:
        """Return the amounts of every tile of `where`, replica by replica; `rate` is the event rate of each source value, if measured."""
        one = held_exactly(self._cuts.amounts(side, where, rate), column_groups(where.neurons, where.columns))
        return TableAmounts(*({name: np.tile(v, where.replicas) for name, v in some.items()} for some in (one.largest, one.total)))

    def held_by(self, side: Side, where: TileRange, rate: Floats | None, groups: Ints) -> TableAmounts:
        """Return the amounts of the column groups with the indices `groups` in a replica; `rate` as for :meth:`held`."""
        found = {name: values[groups] for name, values in self._cuts.amounts(side, where, rate).items()}
        return TableAmounts(found, found)
