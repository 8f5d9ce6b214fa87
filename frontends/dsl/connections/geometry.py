"""Window sizes as users write them: one number for all dimensions, or one each."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TypeAlias

from snnc.compiler.errors import ChannelError, WindowError
from snnc.compiler.ir.arrays.sizes import MAX_ELEMENTS
from snnc.compiler.ir.arrays.windows import output_shape
from snnc.compiler.ir.graph import Conv, Pool, Shape
from snnc.frontends.dsl.errors import ConnectionWindowError

Numbers: TypeAlias = "int | Iterable[int]"
Padding: TypeAlias = "int | str | Iterable[int | tuple[int, int]]"


def dimensions_of(source: Shape, what: str, where: str) -> int:
    """Number of spatial dimensions of `source`, (channels, length) or (channels, height, width).

    Raises
    ------
    ConnectionWindowError
        It has none, or more than two.
    """
    if len(source) not in (2, 3):
        raise ConnectionWindowError(
            f"{where}: {what} needs a source of shape (channels, length) or (channels, height, width), and this one has {source}; give the "
            "input or population that shape."
        )
    return len(source) - 1


def numbers(value: Numbers, dimensions: int, what: str, where: str, least: int = 1) -> tuple[int, ...]:
    """Return one number a dimension.

    Raises
    ------
    ConnectionWindowError
        There are more or fewer, or one is not a whole number of `least` or more.
    """
    try:
        found = tuple(map(operator.index, value)) if isinstance(value, Iterable) else (operator.index(value),) * dimensions
    except TypeError:
        found = ()
    if len(found) != dimensions or not least <= min(found) <= max(found) <= MAX_ELEMENTS:
        raise ConnectionWindowError(
            f"{where}: the {what} is {value!r}; give one whole number of {least} or more, or {dimensions} of them, one a dimension."
        )
    return found


def pairs(
    padding: Padding, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], where: str
) -> tuple[tuple[int, int], ...]:
    """Return (before, after) a dimension; ``"same"`` puts the odd zero after the values, as PyTorch does.

    Raises
    ------
    ConnectionWindowError
        `padding` is not 0 or more, pairs of such, "valid", or "same" with stride 1.
    """
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if set(stride) != {1}:
            raise ConnectionWindowError(f"{where}: padding 'same' goes with stride 1, and the stride is {stride}; give numbers instead.")
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return tuple((n // 2, n - n // 2) for n in total)
    if isinstance(padding, str):
        raise ConnectionWindowError(f"{where}: the padding is {padding!r}; give 'same', 'valid', a number, or (before, after) pairs.")
    if not isinstance(padding, Iterable):
        padding = (padding,) * len(kernel)
    ends = [numbers(pair, 2, "padding", where, least=0) for pair in padding]
    if len(ends) != len(kernel):
        raise ConnectionWindowError(f"{where}: the padding has {len(ends)} entries; give {len(kernel)}, one a dimension.")
    return tuple((before, after) for before, after in ends)


def windowed_shape(operation: Conv | Pool, source: Shape, what: str, where: str) -> Shape:
    """Return the result shape of `operation` for `source`.

    Raises
    ------
    ConnectionWindowError
        It does not fit.
    """
    try:
        return output_shape(what, operation, source)
    except (WindowError, ChannelError) as error:
        raise ConnectionWindowError(f"{where} (source of shape {source}): {error.text}") from None
