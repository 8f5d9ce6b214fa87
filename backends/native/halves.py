"""The float16 numbers of CPU and CUDA programs; weights and states are rounded to float16 but stored as float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snnc.compiler.lowering.halves import Halves, halves_of

if TYPE_CHECKING:
    from snnc.compiler.lowering.half_numbers import HalfOption


def rounded_by_program(half: HalfOption | None, *, trains: bool) -> Halves:
    """Return the chosen numbers that the step program rounds: weights and states. Backends round the other numbers.

    Raises
    ------
    HalfNumbersError
        An option that only training uses was requested for a program that does not train.
    """
    if half is None:
        return Halves()
    return halves_of("float16", half, trains=trains).only("weights", "states")
