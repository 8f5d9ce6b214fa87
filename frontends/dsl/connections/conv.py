"""Convolutions."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import Shape
from snnc.frontends.dsl.connections.base import (
    Branch,
    Connection,
    Seed,
    Weights,
    check_target,
    check_weights,
    generator,
    realise,
    realise_bias,
)
from snnc.frontends.dsl.connections.geometry import Numbers, Padding, dimensions_of, numbers, pairs, windowed_shape
from snnc.frontends.dsl.errors import ConnectionWindowError
from snnc.frontends.dsl.initialisers import FanIn, Fans, Initialiser


@dataclass(frozen=True, eq=False)
class Conv(Connection):
    """A convolution (cross-correlation, as in PyTorch) over one or two dimensions, those of the source after its channels.

    Parameters
    ----------
    channels
        Of the target.
    kernel, stride, dilation
        One number, or one a dimension.
    padding
        Zeros around the source: a number, one a dimension, pairs (before, after), ``"valid"`` (none) or ``"same"`` (with stride 1: the
        target is as large as the source).
    groups
        Independent blocks of channels.
    bias
        One number a channel; as in :class:`Dense`.
    init
        An initialiser (default: torch's), or the weights themselves, ``[channels, source channels / groups, *kernel]``.
    seed, learnable
        As in :class:`Dense`.

    Examples
    --------
    >>> import snnc
    >>> net = snnc.Network()
    >>> image = net.input((1, 28, 28))
    >>> net.shape_after(image, snnc.Conv(16, 5, stride=2, padding=2))
    (16, 14, 14)
    """

    channels: int
    kernel: Numbers
    stride: Numbers = 1
    padding: Padding = 0
    dilation: Numbers = 1
    groups: int = 1
    bias: bool | npt.ArrayLike | Initialiser = True
    init: Weights = FanIn()
    seed: int | None = None
    learnable: bool = True

    def shape_after(self, source: Shape, where: str) -> Shape:
        """Return (channels, *windows)."""
        return windowed_shape(self._operation(source, where), source, "Conv", where)

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a Conv."""
        check_target(self, source, target, where)
        operation = self._operation(source, where)
        rng, (outputs, inputs, *kernel) = generator(self.seed, seed, where), operation.weight.shape
        fans = Fans(inputs * math.prod(kernel), outputs * math.prod(kernel))
        weight = realise(self.init, operation.weight.shape, fans, rng, f"the weight of {where}")
        bias = realise_bias(self.bias, self.init, outputs, fans, rng, where)
        return (Branch((replace(operation, weight=weight, bias=bias),)),)

    def _operation(self, source: Shape, where: str) -> ir.Conv:
        """The operation without its numbers."""
        dimensions = dimensions_of(source, "Conv", where)
        kernel = numbers(self.kernel, dimensions, "kernel", where)
        stride, dilation = (numbers(n, dimensions, what, where) for n, what in ((self.stride, "stride"), (self.dilation, "dilation")))
        padding = pairs(self.padding, kernel, stride, dilation, where)
        try:
            channels, groups = operator.index(self.channels), operator.index(self.groups)
        except TypeError:
            channels = groups = 0
        if channels < 1 or groups < 1 or channels % groups or source[0] % groups:
            raise ConnectionWindowError(
                f"{where}: Conv makes {self.channels!r} channels of {source[0]} in {self.groups!r} groups; give whole numbers of 1 or "
                "more, and groups that divide both."
            )
        shape = (channels, source[0] // groups, *kernel)
        check_weights(shape, f"the weight of {where}")
        nothing = np.broadcast_to(np.float32(0), shape)
        return ir.Conv(nothing, None, stride, padding, dilation, groups, self.learnable)
