"""The cut of a population into replicas and column groups, independent of the number of tiles.

A replica is a copy of the population on separate tiles, for a share of the batch. The neurons of a tile (columns of the weight matrix) are
divided into column groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from snnc.compiler.tiles.blocks.grouping import Ints, ceil_div


@dataclass(frozen=True)
class Cut:
    """Replicas that share the batch, and the maximum number of column groups of a tile's neurons."""

    replicas: int
    """Number of groups of tiles that each process all neurons, for a share of the samples."""
    columns: int
    """Maximum number of column groups of a tile's neurons; see :mod:`snnc.compiler.tiles.blocks.grouping`."""
    paired: bool = True
    """Whether workers share samples in pairs; see :func:`snnc.compiler.tiles.blocks.grouping.split_samples`."""

    def samples(self, batch: int) -> int:
        """Return the maximum number of samples on a tile."""
        return int(ceil_div(batch, self.replicas))


@dataclass(frozen=True, eq=False)
class Cuts:
    """Several cuts as arrays [cuts, 1]; with an array of numbers of neurons, results have the shape [cuts, numbers of neurons]."""

    replicas: Ints
    columns: Ints
    paired: Any

    @classmethod
    def of(cls, cuts: Sequence[Cut]) -> Cuts:
        """Stack cuts, one per row."""
        replicas, columns = (np.array([[getattr(cut, name)] for cut in cuts], dtype=np.int64) for name in ("replicas", "columns"))
        return cls(replicas, columns, np.array([[cut.paired] for cut in cuts]))

    def samples(self, batch: int) -> Ints:
        """Return the maximum number of samples on a tile, for each cut."""
        found: Ints = ceil_div(batch, self.replicas)
        return found


AnyCut: TypeAlias = Cut | Cuts
