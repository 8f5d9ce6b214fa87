"""The value that each tap of each window reads: convolutions and poolings as entries of an indexed map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.arrays.sizes import check_size
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.graph import Array

Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TapEntries:
    """Entries: the value that is read, the value that is added to, and the weight of the entry."""

    source: Ints
    target: Ints
    weight: Ints


def _window_places(windows: Windows) -> TapEntries:
    """Every tap inside the input, of every window, for one channel; `weight` numbers the taps, all in C order."""
    parts = []
    for n, k, s, (before, _), d, count in zip(
        windows.size, windows.kernel, windows.stride, windows.padding, windows.dilation, windows.output, strict=True
    ):
        tap, window = np.meshgrid(np.arange(k, dtype=np.int64), np.arange(count, dtype=np.int64), indexing="ij")
        position = window * s - before + tap * d
        inside = (position >= 0) & (position < n)
        parts.append((position[inside], window[inside], tap[inside]))
    sizes = (windows.size, windows.output, windows.kernel)
    return TapEntries(*(_outer([part[i] for part in parts], size) for i, size in enumerate(sizes)))


def _outer(axes: list[Ints], shape: tuple[int, ...]) -> Ints:
    """Indices in C order of all combinations of the axes' indices."""
    found = axes[0]
    for indices, size in zip(axes[1:], shape[1:], strict=True):
        found = (found[:, None] * size + indices).reshape(-1)
    return found


def convolution_places(windows: Windows, channels: int, groups: int, grain: int = 1) -> tuple[TapEntries, Ints]:
    """Entries of a convolution with `channels` output channels, and the weight's element for each weight of theta.

    The last axis of the kernel is reversed if its taps are consecutive, because the windows that one value reaches then have
    consecutive weights: such entries are merged into runs. Adjacent output channels, `grain` of them, also have
    adjacent weights for one tap.

    Raises
    ------
    TooLargeError
        There would be more entries than can be addressed.
    """
    window, (inputs, outputs) = _window_places(windows), (windows.channels // groups, channels // groups)
    check_size((groups, inputs, outputs, max(1, len(window.source))), "a convolution, written as one entry for each pair of values,")
    kernel = math.prod(windows.kernel)
    order = np.arange(channels * inputs * kernel, dtype=np.int64).reshape(channels // grain, grain, inputs, -1, windows.kernel[-1])
    tap = window.weight
    if windows.stride[-1] == windows.dilation[-1]:
        order = order[..., ::-1]
        tap = tap - tap % windows.kernel[-1] + (windows.kernel[-1] - 1 - tap % windows.kernel[-1])
    target = np.arange(channels, dtype=np.int64)[:, None, None]
    inner = np.arange(inputs, dtype=np.int64)[None, :, None]
    source = (target // outputs * inputs + inner) * math.prod(windows.size) + window.source
    spread = np.broadcast_to(target * math.prod(windows.output) + window.target, source.shape)
    weight = ((target // grain * inputs + inner) * kernel + tap) * grain + target % grain
    return TapEntries(source.reshape(-1), spread.reshape(-1), weight.reshape(-1)), np.moveaxis(order, 1, -1).reshape(-1)


def pooling_places(windows: Windows, count_padding: bool) -> tuple[TapEntries, Array]:
    """Entries of a pooling, and the divisor of each target's average; `weight` numbers the taps."""
    window = _window_places(windows)
    check_size((windows.channels, max(1, len(window.source))), "a pooling, written as one entry for each tap,")
    channel = np.arange(windows.channels, dtype=np.int64)[:, None]
    source = channel * math.prod(windows.size) + window.source
    target = channel * math.prod(windows.output) + window.target
    divisors = windows.taps_inside(count_padding)
    each = divisors[0] if len(divisors) == 1 else np.multiply.outer(*divisors)
    tap = np.broadcast_to(window.weight, source.shape)
    return TapEntries(source.reshape(-1), target.reshape(-1), tap.reshape(-1)), np.tile(each.reshape(-1), windows.channels)
