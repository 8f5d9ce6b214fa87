"""Pooling: windows reduced to one value each, without weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from snnc.compiler.ir import graph as ir
from snnc.compiler.ir.graph import PoolKind, Shape
from snnc.frontends.dsl.connections.base import Branch, Connection, Seed, check_target
from snnc.frontends.dsl.connections.geometry import Numbers, Padding, dimensions_of, numbers, pairs, windowed_shape


@dataclass(frozen=True)
class SumPool(Connection):
    """Sum of each window, channel by channel, over the dimensions of the source after its channels.

    Parameters
    ----------
    kernel
        Size of a window: one number, or one a dimension.
    stride
        From window to window; None for the size of the kernel.
    padding, dilation
        As in :class:`Conv`.
    ceil
        Whether a last window may extend beyond the input, as in PyTorch.
    """

    kernel: Numbers
    stride: Numbers | None = None
    padding: Padding = 0
    dilation: Numbers = 1
    ceil: bool = False
    kind: ClassVar[PoolKind] = "sum"

    def shape_after(self, source: Shape, where: str) -> Shape:
        """Return (channels, *windows)."""
        return windowed_shape(self._operation(source, where), source, type(self).__name__, where)

    def build(self, source: Shape, target: Shape | None, seed: Seed, where: str) -> tuple[Branch, ...]:
        """Return a Pool."""
        check_target(self, source, target, where)
        return (Branch((self._operation(source, where),)),)

    def _operation(self, source: Shape, where: str) -> ir.Pool:
        dimensions = dimensions_of(source, type(self).__name__, where)
        kernel = numbers(self.kernel, dimensions, "kernel", where)
        stride = kernel if self.stride is None else numbers(self.stride, dimensions, "stride", where)
        dilation = numbers(self.dilation, dimensions, "dilation", where)
        padding = pairs(self.padding, kernel, stride, dilation, where)
        counts = bool(getattr(self, "count_padding", True))
        return ir.Pool(self.kind, kernel, stride, padding, dilation, bool(self.ceil), counts)


@dataclass(frozen=True)
class MaxPool(SumPool):
    """Maximum of each window, for spikes their logical or; parameters as in :class:`SumPool`."""

    kind: ClassVar[PoolKind] = "max"


@dataclass(frozen=True)
class AvgPool(SumPool):
    """Average of each window; parameters as in :class:`SumPool`.

    Parameters
    ----------
    count_padding
        Whether padding counts as values, as torch's ``count_include_pad``.
    """

    count_padding: bool = True
    kind: ClassVar[PoolKind] = "average"
