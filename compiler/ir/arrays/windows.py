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
"""Spatial dimensions that windows may have."""


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
    def output(self) -> tuple[int, ...]:
        """Number of windows in each dimension, as counted by PyTorch."""
        return tuple(
            _count(n, (before, after), (k - 1) * d + 1, s, self.ceil)
            for n, k, s, (before, after), d in zip(self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        )

    @property
    def reach(self) -> tuple[int, ...]:
        """Number of positions in each dimension up to the last one read by a window."""
        return tuple(
            min(n, (count - 1) * s - before + (k - 1) * d + 1)
            for n, count, k, s, (before, _), d in zip(
                self.size, self.output, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )

    def taps_inside(self, count_padding: bool) -> tuple[Array, ...]:
        """Return the number of taps that read the input (or, with `count_padding`, the padded input), by dimension and window."""
        taps = []
        for n, k, s, (before, after), d, count in zip(
            self.size, self.kernel, self.stride, self.padding, self.dilation, self.output, strict=True
        ):
            first, last = (-before, n + after) if count_padding else (0, n)
            position = (np.arange(count) * s - before)[:, None] + np.arange(k) * d
            taps.append(((position >= first) & (position < last)).sum(axis=1))
        return tuple(taps)


def _count(length: int, padding: tuple[int, int], extent: int, stride: int, ceil: bool) -> int:
    """Return the number of windows of `extent` positions along an axis; with `ceil`, the last may extend beyond the padding."""
    room = length + sum(padding) - extent
    windows = room // stride + 1
    # PyTorch counts a window that sticks out only if it starts in the input or in the padding before it.
    sticks_out = ceil and room % stride != 0 and windows * stride < length + padding[0]
    return windows + sticks_out


def windows_of(name: str, operation: Conv | Pool, shape: Shape) -> Windows:
    """Return the windows of `operation`, the node `name`, over an input of `shape`.

    Raises
    ------
    WindowError
        A number is out of range, or no window fits.
    ChannelError
        The channels do not fit the weight.
    """
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
    """Check that the groups divide the output channels, and that the weight fits the channels of the input."""
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
    for n, k, s, (before, _), d, count in zip(
        windows.size, windows.kernel, windows.stride, windows.padding, windows.dilation, windows.output, strict=True
    ):
        last_is_after = (count - 1) * s - before >= n
        first_is_before = -(-before // d) >= k
        starts = range(-before, 0, s)[: min(count, d // gcd(s, d))]  # positions of later starts repeat modulo d
        one_jumps_over = n < d and any(start % d >= n for start in starts)
        if last_is_after or first_is_before or one_jumps_over:
            raise WindowError(
                f"{name!r} has a window that covers only padding: input {windows.size}, kernel {windows.kernel}, "
                f"padding {windows.padding}; reduce the padding."
            )
