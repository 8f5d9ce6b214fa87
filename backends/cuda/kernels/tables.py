"""Tables of connections that are not dense, as kernels read them: by target forward, by source backward, by weight for gradients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from snnc.backends.native.tables import Wires

Table = npt.NDArray[np.uint32]
FEW: Final = 4
"""Maximum entries of a weight for which one lane processes all of them."""


@dataclass
class ProgramTables:
    """The tables of a program under construction; expressions of ``network.cu`` name them by number."""

    tables: list[Table] = field(default_factory=list)

    def add(self, table: Table) -> str:
        """Add a table and return the expression of its data on the device."""
        self.tables.append(table)
        return f"tables[{len(self.tables) - 1}].data()"

    def wires(self, given: Sorted) -> str:
        """Add sorted entries; return the initialiser of a ``Wires``."""
        return f"{{{self.add(given.begin.reshape(-1, 1))}, {self.add(given.entries)}}}"


@dataclass(frozen=True, eq=False)
class Sorted:
    """A connection's entries, sorted in one way: the first entry of each key and their number at the end; two numbers per entry."""

    begin: Table
    entries: Table

    @property
    def most(self) -> int:
        """Maximum number of entries of a key."""
        return int(_counts(self.begin).max(initial=0))


def columns(wires: Wires) -> tuple[Table, Table, Table]:
    """Source, target and weight of each entry of wires that are sorted by source."""
    counts = _counts(wires.begin)
    source = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    return source, wires.entries[:, 0], wires.entries[:, 1]


def by(key: Table, count: int, *others: Table) -> Sorted:
    """Sort entries by `key`, of which there are `count`; entries of one key keep their order."""
    order = np.argsort(key, kind="stable")
    begin = np.searchsorted(key[order], np.arange(count + 1)).astype(np.uint32)
    return Sorted(begin, np.stack([other[order] for other in others], axis=1).astype(np.uint32))


def choices_by_source(wires: Wires, sources: int) -> Sorted:
    """The targets of each source of a maximum, whose entries are sorted by target."""
    counts = _counts(wires.begin)
    target = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    return by(wires.entries[:, 0], sources, target)


def _counts(begin: Table) -> npt.NDArray[np.int64]:
    """Entries of each key."""
    first = begin.astype(np.int64)
    return first[1:] - first[:-1]
