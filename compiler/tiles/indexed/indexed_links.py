"""Indexed connections of a mapped network: their tables on tiles, and the *amounts* of these tables, such as rows and bytes.

A tile has tables for each of its column groups, which are parts of its neurons. Connections with equal maps share tables and amounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from snnc.compiler.ir.arrays.indexed_maps import IndexedMap, IndexedOp, indexed_map
from snnc.compiler.ir.step_program import Buffer
from snnc.compiler.tiles.blocks.grouping import Floats, Ints, column_groups, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.indexed.holdings import Profile, TableAmounts, amounts, held_exactly, measure
from snnc.compiler.tiles.indexed.tables import IndexTables, TableForm, source_tables, target_tables
from snnc.compiler.tiles.memo import Memo

CACHED_CUTS: Final = 4
"""Maximum number of cuts (divisions of neurons into tiles and column groups) whose tables are cached while placements are compared."""
Side: TypeAlias = Literal["target", "source"]
"""Population for which a table is built: the target or the source of the connection."""


@dataclass(frozen=True, eq=False)
class MapCuts:
    """Tables of `map` on the tiles of its target and on the tiles of its source, cached for the latest cuts of these populations."""

    map: IndexedMap
    _tables: Memo = field(default_factory=lambda: Memo(CACHED_CUTS))
    _forms: Memo = field(default_factory=Memo)
    _measured: Memo = field(default_factory=lambda: Memo(CACHED_CUTS))

    def tables(self, side: Side, where: TileRange) -> IndexTables:
        """Return the tables of one replica of a population placed on `where`."""
        build = target_tables if side == "target" else source_tables
        return self._tables.get((side, where.neurons.tobytes(), where.columns), lambda: build(self.map, *_groups(where)))

    def form(self, side: Side, where: TileRange) -> TableForm:
        """Return the form of the tables of a population placed on `where`."""
        return self._forms.get((side, where.neurons.tobytes(), where.columns), lambda: self.tables(side, where).form)

    def amounts(self, side: Side, where: TileRange, rate: Floats | None) -> dict[str, Any]:
        """Return the amounts of each column group of a replica; `rate` is the event rate of each source value, if measured."""
        key = (side, where.neurons.tobytes(), where.columns, None if rate is None else rate.tobytes())
        return self._measured.get(key, lambda: amounts(self.tables(side, where), rate))


def _groups(where: TileRange) -> tuple[Ints, Ints]:
    ranges, begin = [], 0
    for neurons, groups in zip(where.neurons.tolist(), column_groups(where.neurons, where.columns).tolist(), strict=True):
        ranges += [(begin + first, count) for first, count in split(neurons, groups)]
        begin += neurons
    array = np.array(ranges, dtype=np.int64)
    return array[:, 0], array[:, 1]


@lru_cache(maxsize=64)
def _profile(indexed: IndexedMap, side: Side) -> Profile:
    """Return the amounts of a map for some group sizes, cached for all plans of a network, which share map objects."""
    if side == "target":
        return measure(partial(target_tables, indexed), indexed.outputs)
    return measure(partial(source_tables, indexed), indexed.inputs)


@dataclass(frozen=True, eq=False)
class IndexedLink:
    """An indexed connection.

    `weight_learns` and `bias_learns` say whether training changes its weights and its biases. `cuts` contains the tables of all maps of
    the network.
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
    def on_tiles(self) -> MapCuts:
        """The tables of :attr:`map`."""
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
        return _profile(self.map, side).held(neurons, groups)

    def held(self, side: Side, where: TileRange, rate: Floats | None = None) -> TableAmounts:
        """Return the amounts of every tile of `where`, replica by replica; `rate` is the event rate of each source value, if measured."""
        replica = held_exactly(self.on_tiles.amounts(side, where, rate), column_groups(where.neurons, where.columns))
        largest, total = ({name: np.tile(v, where.replicas) for name, v in sizes.items()} for sizes in (replica.largest, replica.total))
        return TableAmounts(largest, total)

    def held_by(self, side: Side, where: TileRange, rate: Floats | None, groups: Ints) -> TableAmounts:
        """Return the amounts of the column groups with the indices `groups` in a replica; `rate` as for :meth:`held`."""
        sizes = {name: values[groups] for name, values in self.on_tiles.amounts(side, where, rate).items()}
        return TableAmounts(sizes, sizes)
