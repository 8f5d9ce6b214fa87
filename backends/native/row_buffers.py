"""Row buffers of the emitted program: their number of rows per sample, printed as C++ and evaluated in Python."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.backends.codegen.printing import Guarded, Statement

LINE = 16
"""Float32 values in a cache line; rows are padded to whole lines."""


def padded(size: int) -> int:
    """Return `size`, a number of float32 values, rounded up to whole cache lines."""
    return -(-size // LINE) * LINE


def pitch(size: int) -> int:
    """Return the distance, in values, between rows of `size` values, as in ``arrays.hpp``: whole lines, but no multiple of 8 lines.

    Rows at multiples of 8 lines (512 bytes) would map to few sets of the L1 cache, and evict each other.
    """
    distance = padded(size)
    return distance + LINE if distance % (8 * LINE) == 0 else distance


@dataclass(frozen=True)
class Slots:
    """Number of stored rows per sample: `number`, plus the lengths in steps that `lengths` names.

    These are ``steps`` (of the sequence), ``segment`` (between two checkpoints) and ``block`` (of a block of steps).
    """

    number: int
    lengths: tuple[str, ...] = ()

    def __str__(self) -> str:
        terms = [*self.lengths, *([str(self.number)] if self.number or not self.lengths else [])]
        return " + ".join(terms)


ONE = Slots(1)


@dataclass(frozen=True)
class RowBuffer:
    """A buffer of rows, and how many of them are stored."""

    name: str
    """Name of the buffer in the program."""
    size: int
    """Number of values in a row, without the padding to whole cache lines."""
    in_training: Slots
    in_inference: Slots | None
    """Number of rows per sample, with and without a backward pass; None if only the backward pass uses the rows."""
    width: int = 4
    """Bytes of a value."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.width * pitch(self.size)

    def statement(self, trains: bool) -> Statement:
        """Return the C++ statement that sets the number of rows."""
        if self.in_inference is None:
            return Guarded("training", f"{self.name}.resize({self.in_training}, batch);")
        if not trains or self.in_training == self.in_inference:
            return f"{self.name}.resize({self.in_inference}, batch);"
        return f"{self.name}.resize(training ? {self.in_training} : {self.in_inference}, batch);"
