"""Tables of connections that are not dense, sorted for kernels: by target (forward), source (backward) and weight (gradients)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from snnc.backends.native.tables import Table, Wires

FEW: Final = 4
"""Maximum number of entries per weight for which one lane processes them all."""


@dataclass
class ProgramTables:
    """Collects the tables of a program; ``network.cpp`` refers to them by number."""

    tables: list[Table] = field(default_factory=list)

    def add(self, table: Table) -> str:
        """Add a table and return the expression of its data on the device."""
        self.tables.append(table)
        return f"tables[{len(self.tables) - 1}].data()"

    def wires(self, entries: SortedEntries) -> str:
        """Add sorted entries; return the initialiser of a ``Wires``."""
        return f"{{{self.add(entries.begin.reshape(-1, 1))}, {self.add(entries.entries)}}}"


@dataclass(frozen=True, eq=False)
class SortedEntries:
    """Entries of a connection, sorted by a key."""

    begin: Table
    """[keys + 1]: index of the first entry of each key; the last element is the number of entries."""
    entries: Table
    """[entries, values]: the values of each entry."""

    @property
    def most(self) -> int:
        """Maximum number of entries per key."""
        return int(np.diff(self.begin).max(initial=0))


def columns(wires: Wires) -> tuple[Table, Table, Table]:
    """Return source, target and weight index of each entry of wires that are sorted by source."""
    return _keys(wires), wires.entries[:, 0], wires.entries[:, 1]


def sorted_by(key: Table, count: int, *others: Table) -> SortedEntries:
    """Return the entries sorted by `key`, which is less than `count`; entries with equal keys keep their order."""
    order = np.argsort(key, kind="stable")
    begin = np.searchsorted(key[order], np.arange(count + 1)).astype(np.uint32)
    return SortedEntries(begin, np.stack([other[order] for other in others], axis=1).astype(np.uint32))


def choices_by_source(wires: Wires, sources: int) -> SortedEntries:
    """Return the targets of each source of a maximum over windows; `wires` are sorted by target."""
    return sorted_by(wires.entries[:, 0], sources, _keys(wires))


def _keys(wires: Wires) -> Table:
    """Return the key of each entry of `wires`: the source or target by which they are sorted."""
    counts = np.diff(wires.begin)
    return np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
