"""Contents of the files next to the emitted sources: tables (``plan.bin``) and initial values."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from snnc.backends.folders.project import Chunk
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.vertices.indexed import indexed_tables, tables_before_window_test
from snnc.backends.poplar.vertices.window_tests import window_test_table_count, window_test_tables
from snnc.compiler.ir.graph import Array


def plan_tables(net: PoplarNetwork) -> Iterator[Chunk]:
    """Yield the contents of ``plan.bin``: the number of tables, then the tables.

    The tables, in order: blocks of populations (tile, first neuron, neurons, first sample, samples); relays of stores (tile, first sample,
    samples); vertices of reductions (:class:`~snnc.compiler.ir.plan.PartialSum`); indexed connections; the test for further windows; tiles
    of losses.
    """
    yield struct.pack("<I", tables_before_window_test(net) + window_test_table_count(net) + 1)
    for population in net.plan.populations:
        yield from _table([(b.tile, b.first, b.count, b.sample, b.samples) for b in population.blocks])
    for store in net.stores.values():
        yield from _table([(r.tile, r.sample, r.samples) for r in store.buses[0].relays])
    for gradient in (b.gradient for b in net.plan.buses if b.gradient is not None):
        yield from _table([(v.tile, v.part, v.sample, v.samples, v.entry, v.entries, v.first, v.producers) for v in gradient.sums])
    for table in indexed_tables(net):
        yield from _table(table)
    for rows in window_test_tables(net):
        yield from _table(rows)
    yield from _table(np.array(net.plan.loss_tiles, dtype="<u4").reshape(-1, 1))


def _table(rows: Sequence[Sequence[int]] | Array) -> Iterator[Chunk]:
    array = np.asarray(rows, dtype="<u4")
    yield struct.pack("<II", *array.shape)
    yield array.tobytes()


def parameters_and_states(net: PoplarNetwork, *samples: int) -> dict[str, Array]:
    """Return parameters, and states and outputs before the first step [*samples, neurons], by the host's names."""
    values: dict[str, Array] = {name: np.atleast_1d(p.value) for name, p in net.program.parameters.items()}
    for population in net.program.populations:
        shape = (*samples, net.layers[population.id].neurons)
        for buffer, value in zip(net.step(population.id).states, population.initial, strict=True):
            values[f"{buffer}_initial"] = np.broadcast_to(np.asarray(value, dtype=np.float32).reshape(-1), shape)
        for buffer in sorted(net.initial_outputs & population.before.keys()):
            values[f"{buffer}_initial"] = np.broadcast_to(population.before[buffer].reshape(-1), shape)
    return values


def initial_values(net: PoplarNetwork) -> dict[str, Array]:
    """Return parameters, values before the first step for the whole batch, learning rate, and spike limits, by the host's names."""
    values = parameters_and_states(net, net.plan.batch)
    if net.training and net.program.optimizer is not None:
        values["lr"] = np.array([net.program.optimizer.lr], dtype=np.float32)
    limited = {name: net.limits[name] for name, store in net.stores.items() if store.drops_spikes and name in net.limits}
    return values | {f"{name}_limit": np.array(limit, dtype=np.float32) for name, limit in limited.items()}
