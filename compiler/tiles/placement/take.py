"""A population's choice with its tiles."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.compiler.tiles.placement.choices import Choice
from snnc.compiler.tiles.placement.grouping import ceil_div


@dataclass(frozen=True, eq=False)
class Take:
    """A choice of a population with the number of tiles of one replica."""

    choice: Choice
    width: int

    @property
    def tiles(self) -> int:
        """Tiles of all replicas."""
        return self.choice.cut.replicas * self.width

    @property
    def neurons(self) -> int:
        """Neurons of the fullest tile."""
        return int(ceil_div(self.choice.neurons, self.width))

    def with_fewer(self, neurons: int) -> Take:
        """At most `neurons` on a tile."""
        return Take(self.choice, int(ceil_div(self.choice.neurons, neurons)))
