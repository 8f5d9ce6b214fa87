"""Sizes of number types in bytes, and limits on array sizes, checked before memory is allocated."""

from __future__ import annotations

import math
import os
from typing import Final

from snnc.compiler.errors import EmptyShapeError, TooLargeError
from snnc.compiler.ir.graph import Shape

FLOAT: Final = 4
"""Size of a float32 number in bytes."""
HALF: Final = 2
"""Size of a float16 number in bytes."""
LABEL_BYTES: Final = 4
"""Size of the class label of a sample in bytes."""
MAX_ELEMENTS: Final = 2**31 - 1
"""Maximum number of elements of an array, so that emitted code can index it with 32 bits."""


def check_size(shape: Shape, what: str) -> None:
    """Raise an EmptyShapeError if a size of `shape` is below 1, and a TooLargeError if it has over :data:`MAX_ELEMENTS` elements."""
    if any(n < 1 for n in shape):
        raise EmptyShapeError(f"{what} has shape {shape}; every size must be 1 or more.")
    if math.prod(shape) > MAX_ELEMENTS:
        raise TooLargeError(
            f"{what} has shape {shape}: {math.prod(shape)} elements, more than the {MAX_ELEMENTS} that can be addressed; split it."
        )


def machine_memory() -> int:
    """Return the memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(count: int, what: str) -> None:
    """Raise a TooLargeError unless arrays of `count` 32-bit values fit in the memory of this machine while they are created.

    Each value is created with 64 bits and then converted to 32; at the peak, memory contains both, 8 + 4 bytes.
    """
    needed, available = 12 * count, machine_memory()
    if needed > available:
        raise TooLargeError(
            f"{what} has {count:,} numbers, which need {needed / 2**30:,.1f} GiB while they are created; this machine has "
            f"{available / 2**30:.1f} GiB."
        )
