"""Convolution and pooling connections."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import ChannelError, WindowError
from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.arrays.sizes import MAX_ELEMENTS
from snnc.compiler.ir.arrays.windows import output_shape
from snnc.compiler.ir.graph import PoolKind, Shape
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
from snnc.frontends.dsl.errors import ConnectionWindowError
from snnc.frontends.dsl.initialisers import FanIn, Fans, Initialiser

Numbers: TypeAlias = "int | Iterable[int]"
Padding: TypeAlias = "int | str | Iterable[int | tuple[int, int]]"


def _dimensions_of(source: Shape, what: str, where: str) -> int:
    if len(source) not in (2, 3):
        raise ConnectionWindowError(
            f"{where}: {what} needs a source of shape (channels, length) or (channels, height, width), but its shape is {source}; give the "
            "input or population such a shape."
        )
    return len(source) - 1


def _numbers(value: Numbers, dimensions: int, what: str, where: str, least: int = 1) -> tuple[int, ...]:
    """Return one integer of `least` or more per dimension."""
    try:
        numbers = tuple(map(operator.index, value)) if isinstance(value, Iterable) else (operator.index(value),) * dimensions
    except TypeError:
        numbers = ()
    if len(numbers) != dimensions or not least <= min(numbers) <= max(numbers) <= MAX_ELEMENTS:
        raise ConnectionWindowError(
            f"{where}: the {what} is {value!r}; give one whole number of {least} or more, or {dimensions} of them, one per dimension."
        )
    return numbers


def _pairs(
    padding: Padding, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], where: str
) -> tuple[tuple[int, int], ...]:
    """Return the padding (before, after) of each dimension.

    With ``"same"`` and an odd number of zeros, the extra zero is at the end, as in PyTorch.
    """
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if set(stride) != {1}:
            raise ConnectionWindowError(f"{where}: padding 'same' needs stride 1, but the stride is {stride}; give numbers instead.")
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return tuple((n // 2, n - n // 2) for n in total)
    if isinstance(padding, str):
        raise ConnectionWindowError(f"{where}: the padding is {padding!r}; give 'same', 'valid', a number, or (before, after) pairs.")
    if not isinstance(padding, Iterable):
        padding = (padding,) * len(kernel)
    ends = [_numbers(pair, 2, "padding", where, least=0) for pair in padding]
    if len(ends) != len(kernel):
        raise ConnectionWindowError(f"{where}: the padding has {len(ends)} entries; give {len(kernel)}, one per dimension.")
    return tuple((before, after) for before, after in ends)


def _windowed_shape(operation: ir.Conv | ir.Pool, source: Shape, what: str, where: str) -> Shape:
    try:
        return output_shape(what, operation, source)
    except (WindowError, ChannelError) as error:
        raise ConnectionWindowError(f"{where} (source of shape {source}): {error.text}") from None


@dataclass(frozen=True, eq=False, repr=False)
class ConvConnection(Connection):
    """A convolution (cross-correlation, as in PyTorch) over the source's one or two dimensions after the channels.

    Parameters
    ----------
    channels
        Number of channels of the result.
    kernel, stride, dilation
        One number, or one per dimension.
    padding
        Zeros around the source: a number, one per dimension, pairs (before, after), ``"valid"`` (none) or ``"same"`` (with stride 1: the
        target has the size of the source).
    groups
        Number of independent groups of channels.
    bias
        Bias, one value per channel; as in :class:`snnc.Dense`.
    init
        An initialiser (default: torch's), or the weights themselves, ``[channels, source channels / groups, *kernel]``.
    seed, learnable
        As in :class:`snnc.Dense`.

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
        """Return (channels, *number of windows per dimension)."""
        return _windowed_shape(self._operation(source, where), source, "Conv", where)

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
        """Return the operation with weights of 0."""
        dimensions = _dimensions_of(source, "Conv", where)
        kernel = _numbers(self.kernel, dimensions, "kernel", where)
        stride, dilation = (_numbers(n, dimensions, what, where) for n, what in ((self.stride, "stride"), (self.dilation, "dilation")))
        padding = _pairs(self.padding, kernel, stride, dilation, where)
        try:
            channels, groups = operator.index(self.channels), operator.index(self.groups)
        except TypeError:
            channels = groups = 0
        if channels < 1 or groups < 1 or channels % groups or source[0] % groups:
            raise ConnectionWindowError(
                f"{where}: Conv maps {source[0]} channels to {self.channels!r} in {self.groups!r} groups; give whole numbers of 1 or "
                "more, and groups that divide both."
            )
        shape = (channels, source[0] // groups, *kernel)
        check_weights(shape, f"the weight of {where}")
        zeros = np.broadcast_to(np.float32(0), shape)
        return ir.Conv(zeros, None, stride, padding, dilation, groups, self.learnable)


@dataclass(frozen=True, repr=False)
class SumPoolConnection(Connection):
    """Sum of each window, per channel, over the source's dimensions after the channels.

    Parameters
    ----------
    kernel
        Size of a window: one number, or one per dimension.
    stride
        Distance between windows; None for the size of the kernel.
    padding, dilation
        As in :class:`snnc.Conv`.
    ceil
        Whether the last window may extend beyond the input, like torch's ``ceil_mode``.
    """

    kernel: Numbers
    stride: Numbers | None = None
    padding: Padding = 0
    dilation: Numbers = 1
    ceil: bool = False
    kind: ClassVar[PoolKind] = "sum"

    def shape_after(self, source: Shape, where: str) -> Shape:
        """Return (channels, *number of windows per dimension)."""
        return _windowed_shape(self._operation(source, where), source, self.public_name, where)

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a Pool."""
        check_target(self, source, target, where)
        return (Branch((self._operation(source, where),)),)

    def _operation(self, source: Shape, where: str) -> ir.Pool:
        dimensions = _dimensions_of(source, self.public_name, where)
        kernel = _numbers(self.kernel, dimensions, "kernel", where)
        stride = kernel if self.stride is None else _numbers(self.stride, dimensions, "stride", where)
        dilation = _numbers(self.dilation, dimensions, "dilation", where)
        padding = _pairs(self.padding, kernel, stride, dilation, where)
        counts = bool(getattr(self, "count_padding", True))
        return ir.Pool(self.kind, kernel, stride, padding, dilation, bool(self.ceil), counts)


@dataclass(frozen=True, repr=False)
class MaxPoolConnection(SumPoolConnection):
    """Maximum of each window, for spikes 1 if the window contains one; parameters as in :class:`snnc.SumPool`.

    Padding is never the maximum.
    """

    kind: ClassVar[PoolKind] = "max"


@dataclass(frozen=True, repr=False)
class AvgPoolConnection(SumPoolConnection):
    """Average of each window; parameters as in :class:`snnc.SumPool`.

    Parameters
    ----------
    count_padding
        Whether padding counts as values, like torch's ``count_include_pad``.
    """

    count_padding: bool = True
    kind: ClassVar[PoolKind] = "average"
