"""Float16 numbers of programs for the CPU and for GPUs, which store weights and states as float32 with the values of float16 numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snnc.compiler.errors import HalfTargetError
from snnc.compiler.lowering.halves import halves_of

if TYPE_CHECKING:
    from snnc.compiler.lowering.half_numbers import HalfNumbers
    from snnc.compiler.lowering.halves import Half


def rounded_by_program(half: HalfNumbers | None, *, trains: bool) -> tuple[Half, ...]:
    """Return which of the chosen numbers the step program rounds: weights and states; backends round the others.

    Raises
    ------
    HalfNumbersError
        An option that only training uses was requested for a program that does not train.
    """
    if half is None:
        return ()
    return tuple(kind for kind in halves_of("float16", half, trains=trains) if kind in ("weights", "states"))


def check_weights(half: HalfNumbers | None, *, trains: bool) -> None:
    """Raise an error if weights are to be rounded in a program without updates, which would not round weights that are set later.

    Raises
    ------
    HalfTargetError
        Float16 is requested for the weights of a program without a loss.
    """
    if half is not None and half.weights is not None and not trains:
        raise HalfTargetError(
            "half includes weights, but without training, programs for the CPU and for GPUs read weights as float32; remove weights from "
            "half, or set a loss (--loss ce_count)."
        )
