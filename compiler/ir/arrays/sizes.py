"""Bytes of numbers, and limits of array sizes that are checked before memory is allocated."""

from __future__ import annotations

import math
import os
from typing import Final

from snnc.compiler.errors import EmptyShapeError, TooLargeError
from snnc.compiler.ir.graph import Shape

FLOAT: Final = 4
"""Bytes of a float32 number."""
HALF: Final = 2
"""Bytes of a float16 number."""
LABEL_BYTES: Final = 4
"""Bytes of the class of a sample."""
MAX_ELEMENTS: Final = 2**31 - 1
"""Maximum elements of one array, so that emitted code can index it with 32 bits."""


def check_size(shape: Shape, what: str) -> None:
    """Refuse a shape that is empty or holds more than :data:`MAX_ELEMENTS`, before memory is allocated.

    Raises
    ------
    EmptyShapeError
        An axis is below 1.
    TooLargeError
        The shape holds too many elements.
    """
    if any(n < 1 for n in shape):
        raise EmptyShapeError(f"{what} has shape {shape}; every size is at least 1.")
    if math.prod(shape) > MAX_ELEMENTS:
        raise TooLargeError(
            f"{what} has shape {shape}: {math.prod(shape)} elements, more than the {MAX_ELEMENTS} that can be addressed; split it."
        )


def check_memory(numbers: int, what: str) -> None:
    """Refuse arrays of 32-bit numbers that exceed the memory of this machine, in which they are made as 64-bit numbers.

    Raises
    ------
    TooLargeError
        The numbers do not fit.
    """
    needed, there = 12 * numbers, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise TooLargeError(
            f"{what} has {numbers:,} numbers, which take {needed / 2**30:,.1f} GiB while they are made; this machine has "
            f"{there / 2**30:.1f} GiB."
        )
