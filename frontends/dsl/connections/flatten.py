"""Values of several axes as a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Shape
from snnc.frontends.dsl.connections.base import Branch, Connection, Seed, check_target


@dataclass(frozen=True)
class Flatten(Connection):
    """The same values as a vector; Dense and Sparse flatten automatically."""

    def shape_after(self, source: Shape, where: str) -> Shape:
        """Return the number of values."""
        return (math.prod(source),)

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a Flatten."""
        check_target(self, source, target, where)
        return (Branch((ir.Flatten(),)),)
