"""How a population is cut: what placement chooses beside the number of tiles."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.compiler.mapping.grouping import ceil_div


@dataclass(frozen=True)
class Cut:
    """Replicas that share the batch, and the column groups that a tile's neurons are cut into at most.

    Attributes
    ----------
    replicas
        Groups of tiles with all neurons each; a group handles its share of the samples.
    columns
        See :mod:`snnc.compiler.mapping.grouping`.
    paired
        As :func:`snnc.compiler.mapping.grouping.split_samples` takes it.
    """

    replicas: int
    columns: int
    paired: bool = True

    def samples(self, batch: int) -> int:
        """Samples on a tile, at most."""
        return int(ceil_div(batch, self.replicas))
