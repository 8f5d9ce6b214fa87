"""Batch normalisation between a weight layer and neurons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Shape
from snnc.compiler.neurons.library.batch_norm import MEAN, SHIFT, SLOPE, VARIANCE, BatchStatistics
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.frontends.dsl.connections.base import Branch, Connection, Seed, check_target


@dataclass(frozen=True, eq=False, repr=False)
class BatchNormConnection(Connection):
    """Normalise each channel over samples, steps and space, then scale it: ``y = weight * (x - mean) / sqrt(var + eps) + bias``.

    In training, mean and variance are computed over the batch, space and, without `each_step`, all steps (tdBN; Zheng et al. 2021, DOI
    10.1609/aaai.v35i12.17320). Otherwise, they are the running statistics, stored as the parameters ``mean`` and ``var``. The connection
    follows a weight layer: ``[snnc.Conv(8, 3), snnc.BatchNorm()]``. With a single axis, each value is a channel.

    Parameters
    ----------
    gain
        Initial `weight`; for threshold-dependent normalisation, ``alpha * threshold`` of the neurons that follow.
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

    def shape_after(self, source: Shape, where: str) -> Shape:
        """Return `source`."""
        return source

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a population that stores the statistics, and a Scale."""
        check_target(self, source, target, where)
        model = BatchStatistics(self.momentum, self.eps, self.each_step)
        return (Branch(normalisation(source, model, np.full(source[0], self.gain), np.zeros(source[0]))),)


def normalisation(shape: Shape, model: NeuronModel, weight: ir.Array, bias: ir.Array) -> tuple[ir.Population, ir.Scale]:
    """Return the two operations of a batch normalisation for values of `shape`, whose first axis is the channels."""
    first = {name: np.full(shape, value, np.float32) for name, value in ((MEAN, 0), (VARIANCE, 1), (SHIFT, 0), (SLOPE, 0))}
    wide = (shape[0], *(1,) * (len(shape) - 1))
    gain, offset = (np.asarray(a, np.float32).reshape(wide) for a in (weight, bias))
    return ir.Population(model, shape, first), ir.Scale(gain, offset, learnable=True)
