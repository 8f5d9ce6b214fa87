"""Rows that the emitted program holds: their number for each sample, as C++ and as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.backends.codegen.statements import Guarded, Statement

LINE = 16
"""Numbers of a cache line: rows are filled up to whole ones."""
LENGTHS = ("steps", "segment", "block")
"""Lengths known to a session: of the sequence, of the segment between two checkpoints, of the steps whose deltas are kept together."""


def padded(numbers: int) -> int:
    """Whole lines."""
    return -(-numbers // LINE) * LINE


def pitch(numbers: int) -> int:
    """Numbers from one row to the next, as in ``vectors.hpp``."""
    lines = padded(numbers)
    return lines + LINE if lines % (8 * LINE) == 0 else lines


@dataclass(frozen=True)
class Slots:
    """Number of held rows of each sample: `number`, plus the length for each name in `lengths`."""

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
        Of the rows in the program.
    size
        Numbers of a row, which is padded to whole lines.
    in_training, in_inference
        Slots with and without a following backward pass; `in_inference` None: the rows belong to a backward pass.
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
        """Statement that gives the rows their size."""
        if self.in_inference is None:
            return Guarded("training", f"{self.name}.resize({self.in_training}, batch);")
        if not trains or self.in_training == self.in_inference:
            return f"{self.name}.resize({self.in_inference}, batch);"
        return f"{self.name}.resize(training ? {self.in_training} : {self.in_inference}, batch);"
