"""Connections between neurons or channels with the same index: one to one, flattening, and batch normalisation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Shape
from snnc.compiler.neurons.library.batch_norm import MEAN, SHIFT, SLOPE, VARIANCE, BatchStatistics
from snnc.frontends.dsl.connections.base import Branch, Connection, Seed, Weights, check_target, generator, is_initialiser, realise
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

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a OneToOne."""
        if target not in (None, source):
            raise ConnectionShapeError(
                f"{where}: OneToOne needs equal shapes, but these are {source} and {target}; Dense() connects different sizes."
            )
        if self.weight is None:
            return (Branch((ir.OneToOne(None, False),)),)
        shape = source if is_initialiser(self.weight) or np.ndim(self.weight) else ()  # type: ignore[arg-type]
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


@dataclass(frozen=True, eq=False, repr=False)
class BatchNormConnection(Connection):
    """Normalise each channel over samples, steps and space, then scale it: ``y = weight * (x - mean) / sqrt(var + eps) + bias``.

    In training, mean and variance are computed over the batch, space and, without `each_step`, all steps (tdBN; Zheng et al. 2021, DOI
    10.1609/aaai.v35i12.17320). Otherwise, they are the running statistics, stored as the parameters ``mean`` and ``var``. The connection
    follows a weight layer: ``[snnc.Conv(8, 3), snnc.BatchNorm()]``. With a single axis, each value is a channel.

    Parameters
    ----------
    gain
        Initial `weight`; for threshold-dependent normalisation (Zheng et al.), their factor ``alpha`` times the threshold of the neurons
        that follow.
    momentum
        Share of the batch's statistics in the new running statistics, as in PyTorch.
    eps
        Added to the variance.
    each_step
        Whether to compute statistics separately for each step, over samples and space, like a normalisation inside a loop over time.
    """

    gain: float = 1.0
    momentum: float = 0.1
    eps: float = 1e-5
    each_step: bool = False

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a population that stores the statistics, and a Scale."""
        check_target(self, source, target, where)
        initial = {name: np.full(source, value, np.float32) for name, value in ((MEAN, 0), (VARIANCE, 1), (SHIFT, 0), (SLOPE, 0))}
        statistics = ir.Population(BatchStatistics(self.momentum, self.eps, self.each_step), source, initial)
        per_channel = (source[0], *(1,) * (len(source) - 1))
        gain, bias = (np.full(per_channel, value, np.float32) for value in (self.gain, 0))
        return (Branch((statistics, ir.Scale(gain, bias, learnable=True))),)
