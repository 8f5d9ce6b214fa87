"""Connections that do not mix the values of different neurons: one to one, and flattening."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Shape
from snnc.frontends.dsl.connections.base import Branch, Connection, Seed, Weights, check_target, draws, generator, realise
from snnc.frontends.dsl.errors import ConnectionShapeError
from snnc.frontends.dsl.initialisers import Fans


@dataclass(frozen=True, eq=False, repr=False)
class OneToOneConnection(Connection):
    """Neuron k of the source feeds neuron k of the target.

    Parameters
    ----------
    weight
        A number for all neurons, an array of the source's shape, an initialiser, or None for 1.
    learnable
        Whether training changes the weight.
    seed
        As in :class:`snnc.Dense`.
    """

    weight: Weights | None = None
    learnable: bool = False
    seed: int | None = None

    def shape_after(self, source: Shape, where: str) -> Shape:
        """Return `source`."""
        return source

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a OneToOne."""
        if target not in (None, source):
            raise ConnectionShapeError(
                f"{where}: OneToOne needs equal shapes, but these are {source} and {target}; Dense() connects different sizes."
            )
        if self.weight is None:
            return (Branch((ir.OneToOne(None, False),)),)
        scalar = not draws(self.weight) and np.ndim(self.weight) == 0  # type: ignore[arg-type]
        shape = () if scalar else source
        weight = realise(self.weight, shape, Fans(1, 1), generator(self.seed, seed, where), f"the weight of {where}")
        return (Branch((ir.OneToOne(weight, self.learnable),)),)


@dataclass(frozen=True, repr=False)
class FlattenConnection(Connection):
    """Reshape the source to a vector; Dense and Sparse do so automatically."""

    def shape_after(self, source: Shape, where: str) -> Shape:
        """Return the number of values."""
        return (math.prod(source),)

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a Flatten."""
        check_target(self, source, target, where)
        return (Branch((ir.Flatten(),)),)
