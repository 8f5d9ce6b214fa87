"""Connections that are not dense, as emitted programs read them: tables of entries, and windows of convolutions and pooling."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snnc.backends.folders.project import Chunk
from snnc.backends.native.storage import SequenceStorage
from snnc.compiler.ir.arrays.indexed_maps import indexed_map
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.step_operations import AddOneToOne, ConnectionOp, DenseProduct

Table = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Wires:
    """A connection as a list of entries (wires), sorted by source (for a maximum, such as maximum pooling, by target)."""

    begin: Table
    """Index of the first entry of each source (for a maximum, of each target); the last element is the number of entries."""
    entries: Table
    """Target and index of the weight of each entry (for a maximum, its source)."""
    constants: npt.NDArray[np.float32] | None = None
    """Weights if the connection has no weight parameter, else None."""
    bias: Table | None = None
    """Index of the bias of each target; None if the connection has no bias, or if the current is initialised with it."""

    def tables(self) -> list[Table]:
        """Return the tables in the order in which the program reads them."""
        tables = [self.begin.reshape(-1, 1), self.entries]
        if self.constants is not None:
            tables.append(self.constants.astype("<f4").view("<u4").reshape(-1, 1))
        if self.bias is not None:
            tables.append(self.bias.reshape(-1, 1))
        return tables


def wires_of(op: ConnectionOp, storage: SequenceStorage) -> Wires:
    """Return the wires of a connection that is not dense."""
    assert not isinstance(op, DenseProduct), "dense connections have no wires"
    if isinstance(op, AddOneToOne):
        return _one_to_one(op, storage)
    indexed = indexed_map(op, storage.program.buffers)
    source, target, weight = indexed.source, indexed.target, indexed.weight
    if indexed.length > 1:  # an entry of the map stands for `length` consecutive targets and weights
        step = np.arange(indexed.length)
        source = np.repeat(source, indexed.length)
        target, weight = ((n[:, None] + step).reshape(-1) for n in (target, weight))
    if indexed.maximum:
        order = np.lexsort((weight, target))
        return Wires(first_entries(target[order], indexed.outputs), source[order].astype(np.uint32).reshape(-1, 1))
    # An entry whose source is beyond the inputs is a bias.
    real = source < indexed.inputs
    bias = None
    if indexed.biases:
        bias = np.zeros(indexed.outputs, np.uint32)
        bias[target[~real]] = weight[~real] - indexed.weights
    source, target, weight = source[real], target[real], weight[real]
    if indexed.order is not None:
        weight = indexed.order[weight]
    order = np.argsort(source, kind="stable")
    entries = np.stack([target[order], weight[order]], axis=1).astype(np.uint32)
    return Wires(first_entries(source[order], indexed.inputs), entries, indexed.constants if indexed.order is None else None, bias)


def _one_to_one(op: AddOneToOne, storage: SequenceStorage) -> Wires:
    values = np.arange(storage.size(op.source.buffer), dtype=np.uint32)
    shared = op.weight is None or storage.size(op.weight) == 1
    entries = np.stack([values + op.offset, values * (not shared)], axis=1).astype(np.uint32)
    return Wires(first_entries(values, len(values)), entries, np.ones(1, np.float32) if op.weight is None else None)


def first_entries(sorted_ids: npt.NDArray[np.integer], count: int) -> Table:
    """Return the index of the first entry of each id below `count`, and the number of entries."""
    return np.searchsorted(sorted_ids, np.arange(count + 1)).astype(np.uint32)


def table_file(tables: Sequence[Table]) -> Iterator[Chunk]:
    """Yield the contents of a file of tables: the number of tables; then, of each, the numbers of rows and columns, and the values."""
    yield struct.pack("<I", len(tables))
    for table in tables:
        array = np.ascontiguousarray(table, dtype="<u4")
        yield struct.pack("<II", *array.shape)
        yield array.tobytes()


def windows_expression(windows: Windows, output: Sequence[int], channels: int, outputs: int, groups: int) -> str:
    """Return the C++ initialiser of ``Windows``, with two spatial axes.

    `output` is the number of positions along each axis; the other numbers are those of channels, output channels and groups.
    """
    pairs = (windows.size, output, windows.kernel, windows.stride, [before for before, _ in windows.padding], windows.dilation)
    numbers = [str(channels), str(outputs), str(groups)]
    numbers += ["{" + ", ".join(map(str, two_axes(pair, n))) + "}" for pair, n in zip(pairs, (1, 1, 1, 1, 0, 1), strict=True)]
    return f"Windows{{{', '.join(numbers)}}}"


def two_axes(numbers: Sequence[int], missing: int = 1) -> tuple[int, int]:
    """Return numbers for two axes: a single number is for the second axis, and the first is then `missing`."""
    return (missing, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
