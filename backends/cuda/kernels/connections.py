"""Connection data that kernels read, as members of the C++ struct ``Net``: tables, constant weights, and copies of dense weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from snnc.backends.cuda.kernels.copies import Kind, WeightCopy
from snnc.backends.native.storage import SequenceStorage, is_maximum
from snnc.backends.native.tables import Table, Wires, first_entries, windows_expression, wires_of
from snnc.compiler.ir import step_operations as ops

WiredGradient: TypeAlias = ops.OneToOneWeightGradient | ops.SparseWeightGradient | ops.RescaleWeightGradient | ops.RescaleBiasGradient
FEW: Final = 4
"""Maximum number of entries per weight for which one lane processes them all."""


@dataclass(frozen=True)
class SharedWeight:
    """A matrix [rows][columns]; a thread block may keep the columns of its neurons in shared memory."""

    name: str
    """Name of the member of type ``Near`` (weights in shared memory) in ``Net``."""
    matrix: str
    """C++ expression of the matrix in device memory."""
    reader: str
    """The population whose warps read it, one column per neuron."""
    rows: int
    columns: int
    back: bool
    """Whether it is read in the backward pass."""
    fragments: bool = False
    """Whether it is a 16-bit copy, with one row of pairs per neuron."""

    @property
    def fetch(self) -> str:
        """Start of the C++ call that loads the matrix into shared memory."""
        if self.fragments:
            return f"fetch_fragments(net.{self.name}, {self.matrix}, half_pairs({self.rows})"
        return f"fetch<{self.columns}>(net.{self.name}, {self.matrix}, {self.rows}"

    @property
    def place(self) -> str:
        """C++ initialiser of the allocation in shared memory: number of neurons, and words for 32 neurons."""
        words = f"LANES * (half_pairs({self.rows}) + APART)" if self.fragments else f"LANES * {self.rows}"
        return f"{{&net.{self.name}, {self.columns}, {words}}}"

    @property
    def expression(self) -> str:
        """C++ expression with which a warp reads it."""
        if self.fragments:
            return f"fragments_of(net.{self.name}, {self.matrix}, half_pairs({self.rows}), item)"
        return f"columns_of(net.{self.name}, {self.matrix}, {self.columns}, item)"


@dataclass(frozen=True)
class ConnectionCode:
    """C++ expressions of a connection's tables."""

    by_target: str
    """The entries, sorted by target."""
    weight: str = ""
    """The weights; empty: no weights."""
    bias_of: str | None = None
    """Table with the index of each target's bias; None: the connection has no such table."""


class Connections:
    """Collects the data of a program's connections; each table is added when it is first used.

    The entries of connections that are not dense are sorted by target (for the forward pass), source (backward pass) or weight (gradients).
    """

    def __init__(self, storage: SequenceStorage) -> None:
        self.storage = storage
        self.program = storage.program
        self.tables: list[Table] = []
        """The tables of the program; ``network.cpp`` refers to them by number."""
        self.fields: list[str] = []
        self.binding: list[str] = []
        """Members of ``Net``, and the statements that initialise them."""
        self.copies: dict[str, WeightCopy] = {}
        self.shared_weights: list[SharedWeight] = []
        """Weights that blocks may keep in shared memory."""
        self._wires: dict[str, Wires] = {}

    def operation(self, connection: str) -> ops.ConnectionOp:
        """Return the forward operation of a connection."""
        return next(op for op in self.program.forward if isinstance(op, ops.ConnectionOp) and op.connection == connection)

    def wires(self, op: ops.ConnectionOp) -> Wires:
        """Return the entries of a connection, sorted by source (for a maximum, by target)."""
        if op.connection not in self._wires:
            self._wires[op.connection] = wires_of(op, self.storage)
        return self._wires[op.connection]

    def by_target(self, op: ops.ConnectionOp) -> ConnectionCode:
        """Return the tables of a connection, sorted by target."""
        wires, name = self.wires(op), f"{op.connection}_by_target"
        if is_maximum(op):
            return ConnectionCode(self._bind_wires(name, wires))
        source, target, weight = _columns(wires)
        self._bind_wires(name, _sorted_by(target, self.storage.size(op.target), source, weight))
        bias_of = None
        if isinstance(op, ops.Rescale) and op.bias is not None and wires.bias is not None:
            bias_of, table = f"net.{op.connection}_bias_of", wires.bias.reshape(-1, 1)
            self._bind("const std::uint32_t *", f"{op.connection}_bias_of", lambda: self._add(table))
        return ConnectionCode(f"net.{name}", self._weight(op), bias_of)

    def by_source(self, op: ops.ConnectionOp) -> str:
        """Return the C++ expression of a connection's entries sorted by source; for a maximum, these are the targets of each source."""
        wires, sources, name = self.wires(op), self.storage.size(op.source.buffer), f"{op.connection}_by_source"
        if is_maximum(op):
            return self._bind_wires(name, _sorted_by(wires.entries[:, 0], sources, _keys(wires)))
        source, target, weight = _columns(wires)
        return self._bind_wires(name, _sorted_by(source, sources, target, weight))

    def windows_partition(self, op: ops.ConnectionOp) -> tuple[bool, bool]:
        """Return whether the windows of a maximum do not overlap, and whether every source is in a window."""
        entries = self.wires(op).entries.ravel()
        different = len(np.unique(entries))
        return different == len(entries), different == self.storage.size(op.source.buffer)

    def by_parameter(self, op: WiredGradient) -> tuple[str, bool]:
        """Return the C++ expression of a connection's entries sorted by weight (or bias), and whether each has at most `FEW` entries."""
        wires, numbers = self.wires(self.operation(op.connection)), max(1, self.storage.size(op.gradient))
        if isinstance(op, ops.RescaleBiasGradient):
            assert wires.bias is not None, "biases have a table"
            targets = np.arange(len(wires.bias), dtype=np.uint32)
            entries, name = _sorted_by(wires.bias, numbers, targets, targets), f"{op.connection}_by_bias"
        else:
            source, target, weight = _columns(wires)
            entries, name = _sorted_by(weight, numbers, source, target), f"{op.connection}_by_weight"
        return self._bind_wires(name, entries), int(np.diff(entries.begin).max(initial=0)) <= FEW

    def windows(self, op: ops.Convolve | ops.ConvolveInputGradient) -> str:
        """Return the C++ value ``Windows{…}`` of a convolution; the axis of a 1-D convolution becomes the second of two axes."""
        outputs = self.program.buffers[op.weight].shape[0]
        return windows_expression(op.windows, op.windows.output, op.windows.channels, outputs, op.groups)

    def copy(self, weight: str, kind: Kind) -> str:
        """Return the C++ expression of a copy of a dense weight; the copy is registered at its first use."""
        outputs, inputs = self.program.buffers[weight].shape
        copy = WeightCopy(weight, kind, inputs, outputs)
        self.copies[copy.name] = copy
        return f"net.{copy.name}"

    def _weight(self, op: ops.ConnectionOp) -> str:
        """Return the C++ expression of a connection's weights; constant ones are in a table."""
        weight = op.weight if isinstance(op, ops.SparseProduct | ops.AddOneToOne | ops.Rescale) else None
        if weight is not None:
            return f"net.{weight}"
        constants = self.wires(op).constants
        assert constants is not None, "connections without a weight parameter have constants"
        table = constants.astype("<f4").view("<u4").reshape(-1, 1)
        pointer = "const float *"
        return self._bind(pointer, f"{op.connection}_constants", lambda: f"reinterpret_cast<{pointer}>({self._add(table)})")

    def shared(self, weight: SharedWeight) -> str:
        """Return the C++ expression of the columns of a weight, which may be in shared memory."""
        if weight not in self.shared_weights:
            self.shared_weights.append(weight)
            self.fields.append(f"Near {weight.name};")
        return weight.expression

    def _bind(self, kind: str, name: str, initializer: Callable[[], str]) -> str:
        """Return the C++ expression of a member of ``Net``, which is declared and initialised at its first use."""
        if f"{kind}{name};" not in self.fields:
            self.fields.append(f"{kind}{name};")
            self.binding.append(f"net.{name} = {initializer()};")
        return f"net.{name}"

    def _bind_wires(self, name: str, wires: Wires) -> str:
        return self._bind("Wires ", name, lambda: f"{{{self._add(wires.begin.reshape(-1, 1))}, {self._add(wires.entries)}}}")

    def _add(self, table: Table) -> str:
        """Add a table and return the expression of its data on the device."""
        self.tables.append(table)
        return f"tables[{len(self.tables) - 1}].data()"


def _columns(wires: Wires) -> tuple[Table, Table, Table]:
    """Return source, target and weight index of each entry of wires that are sorted by source."""
    return _keys(wires), wires.entries[:, 0], wires.entries[:, 1]


def _sorted_by(key: Table, count: int, *others: Table) -> Wires:
    """Return entries of `others`, sorted by `key`, which is less than `count`; entries with equal keys keep their order."""
    order = np.argsort(key, kind="stable")
    entries = np.stack([other[order] for other in others], axis=1).astype(np.uint32)
    return Wires(first_entries(key[order], count), entries)


def _keys(wires: Wires) -> Table:
    """Return the key of each entry of `wires`: the source or target by which they are sorted."""
    counts = np.diff(wires.begin)
    return np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
