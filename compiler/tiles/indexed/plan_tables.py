"""Tables of the indexed connections (convolutions and others that are not dense) of a plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snnc.compiler.ir.arrays.indexed_maps import IndexedMap, IndexedOp, indexed_map
from snnc.compiler.ir.plan import Plan, PopulationPlan
from snnc.compiler.ir.step_operations import InputGradient
from snnc.compiler.ir.step_program import ConnectionInfo, StepProgram
from snnc.compiler.tiles.blocks.grouping import Ints
from snnc.compiler.tiles.indexed.owners import Owners, find_owners
from snnc.compiler.tiles.indexed.tables import IndexTables, source_tables, target_tables


@dataclass(frozen=True, eq=False)
class IndexedConnection:
    """An indexed connection of a plan, with the tables of one replica; all replicas have the same tables."""

    connection: ConnectionInfo
    map: IndexedMap
    target: IndexTables
    source: IndexTables | None
    """Tables on the source's side; None if the source needs no gradient."""
    owners: Owners | None
    """Owners of the weights; None if they are constants."""


def indexed_connections(program: StepProgram, plan: Plan) -> dict[str, IndexedConnection]:
    """Build the tables of every indexed connection of `program`, by connection id, for the blocks in `plan`."""
    placed = {p.id: p for p in plan.populations}
    learned = {op.parameter for op in program.update} if plan.training else set()
    back = {op.connection for op in program.backward if isinstance(op, InputGradient)} if plan.training else set()
    connections = {}
    for op in (op for op in program.forward if isinstance(op, IndexedOp)):
        id_ = op.connection
        connection = next(c for c in program.connections if c.id == id_)
        indexed, target = indexed_map(op, program.buffers), placed[connection.target]
        group_tiles, *groups = _groups(target)
        tables = target_tables(indexed, *groups)
        source = source_tables(indexed, *_groups(placed[connection.source])[1:]) if id_ in back else None
        owners = None
        if indexed.constants is None:
            learns = {"weight_learns": connection.weight in learned, "bias_learns": connection.bias in learned}
            tiles = np.array(sorted({b.tile for b in target.blocks}), dtype=np.int64)
            owners = find_owners(indexed, tables.used, group_tiles, tiles, **learns)
        connections[id_] = IndexedConnection(connection, indexed, tables, source, owners)
    return connections


def _groups(placed: PopulationPlan) -> Ints:
    """Return [3, groups]: tile, first neuron and number of neurons of each column group of the first replica."""
    blocks = np.array([(b.tile, b.first, b.count) for b in placed.blocks], dtype=np.int64)
    wraps = np.flatnonzero(np.diff(blocks[:, 1]) < 0)
    one = blocks[: wraps[0] + 1] if len(wraps) else blocks
    return one[np.unique(one[:, 1], return_index=True)[1]].T
