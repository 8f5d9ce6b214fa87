"""Windows of convolutions and pooling as C++, with two spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from snnc.compiler.ir.arrays.windows import Windows


def windows_expression(windows: Windows, output: Sequence[int], channels: int, outputs: int, groups: int) -> str:
    """Return the C++ initialiser of ``Windows`` with `output` positions, and these numbers of channels, output channels and groups."""
    pairs = (windows.size, output, windows.kernel, windows.stride, [before for before, _ in windows.padding], windows.dilation)
    numbers = [str(channels), str(outputs), str(groups)]
    numbers += ["{" + ", ".join(map(str, two_axes(pair, n))) + "}" for pair, n in zip(pairs, (1, 1, 1, 1, 0, 1), strict=True)]
    return f"Windows{{{', '.join(numbers)}}}"


def two_axes(numbers: Sequence[int], missing: int = 1) -> tuple[int, int]:
    """Return numbers for two axes: a single number is for the second axis, and the first is then `missing`."""
    return (missing, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
