"""Buffers of rows in the emitted program: the number of rows per sample, printed as C++ and evaluated."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.backends.codegen.statements import Guarded, Statement

LINE = 16
"""Float32 numbers in a cache line; rows are padded to whole lines."""
LENGTHS = ("steps", "segment", "block")
"""Lengths that a session defines: of the sequence, of the segment between two checkpoints, and of a block of steps with stored deltas."""


def padded(numbers: int) -> int:
    """Return `numbers` rounded up to whole cache lines."""
    return -(-numbers // LINE) * LINE


def pitch(numbers: int) -> int:
    """Return the distance between two rows in numbers, as in ``vectors.hpp``."""
    lines = padded(numbers)
    return lines + LINE if lines % (8 * LINE) == 0 else lines


@dataclass(frozen=True)
class Slots:
    """Number of stored rows per sample: `number`, plus the length for each name in `lengths`."""

    number: int
    lengths: tuple[str, ...] = ()

    def __str__(self) -> str:
        terms = [*self.lengths, *([str(self.number)] if self.number or not self.lengths else [])]
        return " + ".join(terms)


ONE = Slots(1)


@dataclass(frozen=True)
class RowBuffer:
    """Rows of a buffer.

    Attributes
    ----------
    name
        Name of the buffer in the program.
    size
        Numbers in a row, without the padding to whole lines.
    in_training, in_inference
        Slots with and without a following backward pass; `in_inference` is None if only the backward pass uses the rows.
    width
        Bytes of a number.
    """

    name: str
    size: int
    in_training: Slots
    in_inference: Slots | None
    width: int = 4

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
