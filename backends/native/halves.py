"""Float16 numbers of programs for the CPU and for GPUs, which store weights and states as float32 with the values of float16 numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snnc.compiler.lowering.halves import Halves, halves_of

if TYPE_CHECKING:
    from snnc.compiler.lowering.half_numbers import HalfOption


def rounded_by_program(half: HalfOption | None, *, trains: bool) -> Halves:
    """Return which of the chosen numbers the step program rounds: weights and states; backends round the others.

    Raises
    ------
    HalfNumbersError
        An option that only training uses was requested for a program that does not train.
    """
    if half is None:
        return Halves()
    return halves_of("float16", half, trains=trains).only("weights", "states")
