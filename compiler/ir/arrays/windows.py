"""Positions of the windows of convolutions and poolings, checked against their input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np

from snnc.compiler.errors import ChannelError, WindowError
from snnc.compiler.ir.graph import Array, Conv, Pool, Shape

DIMENSIONS: Final = (1, 2)
"""Numbers of spatial dimensions that windows may have."""


@dataclass(frozen=True)
class Windows:
    """Windows over an array of shape (channels, *size); every tuple has one entry per spatial dimension.

    A *tap* is an element of the kernel: tap j of window i reads position ``i * stride - padding[0] + j * dilation``. Positions outside
    `size` are padding. With `ceil`, a last window may extend beyond the padded input.
    """

    channels: int
    size: Shape
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    ceil: bool = False

    @property
    def shape(self) -> Shape:
        """Shape of the input: (channels, *size)."""
        return (self.channels, *self.size)

    @property
    def axes(self) -> tuple[WindowAxis, ...]:
        """The windows along each dimension."""
        sizes = zip(self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return tuple(
            WindowAxis(size, kernel, stride, before, after, dilation, self.ceil)
            for size, kernel, stride, (before, after), dilation in sizes
        )

    @property
    def output(self) -> tuple[int, ...]:
        """Number of windows in each dimension, as counted by PyTorch."""
        return tuple(axis.count for axis in self.axes)

    @property
    def reach(self) -> tuple[int, ...]:
        """Number of positions in each dimension up to the last one read by a window."""
        return tuple(min(axis.size, (axis.count - 1) * axis.stride - axis.before + axis.extent) for axis in self.axes)

    def taps_inside(self, count_padding: bool) -> tuple[Array, ...]:
        """Return the number of taps that read the input (or, with `count_padding`, the padded input), by dimension and window."""
        taps = []
        for axis in self.axes:
            first, last = (-axis.before, axis.size + axis.after) if count_padding else (0, axis.size)
            position = (np.arange(axis.count) * axis.stride - axis.before)[:, None] + np.arange(axis.kernel) * axis.dilation
            taps.append(((position >= first) & (position < last)).sum(axis=1))
        return tuple(taps)


@dataclass(frozen=True)
class WindowAxis:
    """Windows along one dimension; fields as in :class:`Windows`, with the padding `before` and `after` the input."""

    size: int
    kernel: int
    stride: int
    before: int
    after: int
    dilation: int
    ceil: bool

    @property
    def extent(self) -> int:
        """Number of positions from the first tap of a window to its last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def count(self) -> int:
        """Number of windows."""
        room = self.size + self.before + self.after - self.extent
        windows = room // self.stride + 1
        # PyTorch counts a window that sticks out only if it starts in the input or in the padding before it.
        sticks_out = self.ceil and room % self.stride != 0 and windows * self.stride < self.size + self.before
        return windows + sticks_out


def windows_of(name: str, operation: Conv | Pool, shape: Shape) -> Windows:
    """Return the windows of `operation`, the node `name`, over an input of `shape`."""
    kernel = operation.weight.shape[2:] if isinstance(operation, Conv) else operation.kernel
    dimensions = len(kernel)
    if dimensions not in DIMENSIONS:
        raise WindowError(f"the kernel of {name!r} has shape {kernel}; snnc supports windows of 1 or 2 dimensions.")
    if len(shape) != dimensions + 1:
        axes = ", ".join(("channels", "height", "width") if dimensions == 2 else ("channels", "length"))
        raise WindowError(
            f"{name!r} has a kernel of shape {kernel} and needs an input ({axes}), but its input has shape {shape}; reshape it."
        )
    ones = (1,) * dimensions
    default_stride = ones if isinstance(operation, Conv) else kernel
    windows = Windows(
        channels=shape[0],
        size=shape[1:],
        kernel=_numbers(name, "kernel", kernel, dimensions),
        stride=_numbers(name, "stride", operation.stride or default_stride, dimensions),
        padding=_pairs(name, operation.padding, dimensions),
        dilation=_numbers(name, "dilation", operation.dilation or ones, dimensions),
        ceil=isinstance(operation, Pool) and operation.ceil,
    )
    if isinstance(operation, Conv):
        _check_channels(name, operation, shape)
    if min(windows.output) < 1:
        raise WindowError(
            f"no window of {name!r} fits: kernel {windows.kernel} with dilation {windows.dilation} is larger than the input {windows.size} "
            f"with padding {windows.padding}."
        )
    if isinstance(operation, Pool) and operation.kind != "sum":
        _check_padding(name, windows)
    return windows


def output_shape(name: str, operation: Conv | Pool, shape: Shape) -> Shape:
    """Return the output shape of `operation` for an input of `shape`; it raises the errors of :func:`windows_of`."""
    windows = windows_of(name, operation, shape)
    channels = operation.weight.shape[0] if isinstance(operation, Conv) else shape[0]
    return (channels, *windows.output)


def _numbers(name: str, what: str, values: Iterable[int], dimensions: int) -> tuple[int, ...]:
    numbers = tuple(int(v) for v in values)
    if len(numbers) != dimensions or min(numbers) < 1:
        raise WindowError(f"the {what} of {name!r} is {numbers}; give {dimensions} numbers of 1 or more.")
    return numbers


def _pairs(name: str, padding: tuple[tuple[int, int], ...], dimensions: int) -> tuple[tuple[int, int], ...]:
    pairs = padding or ((0, 0),) * dimensions
    if len(pairs) != dimensions or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise WindowError(f"the padding of {name!r} is {pairs}; give {dimensions} pairs (before, after) of 0 or more.")
    return tuple((int(before), int(after)) for before, after in pairs)


def _check_channels(name: str, operation: Conv, shape: Shape) -> None:
    outputs, inputs = operation.weight.shape[:2]
    groups = operation.groups
    if groups < 1 or outputs % groups:
        raise ChannelError(f"{name!r} has {outputs} output channels in {groups} groups; their number must divide the channels.")
    if inputs * groups != shape[0]:
        raise ChannelError(
            f"{name!r} expects {inputs * groups} channels (weight {operation.weight.shape}, groups {groups}), but its input of shape "
            f"{shape} has {shape[0]}."
        )


def _check_padding(name: str, windows: Windows) -> None:
    """Check that every window of a maximum or an average contains a value of the input."""
    for axis in windows.axes:
        last_is_after = (axis.count - 1) * axis.stride - axis.before >= axis.size
        first_is_before = -(-axis.before // axis.dilation) >= axis.kernel
        # Positions modulo the dilation repeat after dilation / gcd(stride, dilation) windows.
        different = min(axis.count, axis.dilation // gcd(axis.stride, axis.dilation))
        starts = range(-axis.before, 0, axis.stride)[:different]
        one_jumps_over = axis.size < axis.dilation and any(start % axis.dilation >= axis.size for start in starts)
        if last_is_after or first_is_before or one_jumps_over:
            raise WindowError(
                f"{name!r} has a window that covers only padding: input {windows.size}, kernel {windows.kernel}, "
                f"padding {windows.padding}; reduce the padding."
            )
