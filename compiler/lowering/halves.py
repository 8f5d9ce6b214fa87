"""Numbers that a program stores as float16 if its precision asks for it. Sums, running states and updated values are float32.

A program that trains rounds its history. A program that only runs has no history, and rounds the weights of its dense connections. Weights
that are updated stay float32: an update below half a unit in the last place would be lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import numpy as np

from snnc.compiler.errors import HalfRangeError, NothingRoundedError
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_program import ConnectionInfo, Parameter, StepProgram

LARGEST: Final = float(np.finfo(np.float16).max)

Half: TypeAlias = Literal["history", "weights"]
"""``"history"``: states and values of all steps that the adjoint reads; ``"weights"``: those of dense connections."""


def halves_of(precision: Precision, *, trains: bool) -> tuple[Half, ...]:
    """Return the kinds of numbers that a program of this precision stores as float16."""
    if precision != "float16":
        return ()
    return ("history",) if trains else ("weights",)


def check_halves(half: Collection[Half], program: StepProgram) -> None:
    """Refuse a precision of float16 for a program without numbers to round.

    Raises
    ------
    NothingRoundedError
        No state can be stored as float16, or no connection is dense.
    """
    if "history" in half:
        check_past(any(p.kernel.rounded for p in program.populations), program)
    if "weights" in half:
        check_dense(program)


def check_past(found: bool, program: StepProgram) -> None:
    """Refuse to round the history of a program if no value was `found` that may be rounded.

    Raises
    ------
    NothingRoundedError
        No value may be rounded.
    """
    if not found:
        raise NothingRoundedError(
            f"no population of {program.name!r} stores a value that can be rounded to float16 without changing a decision of the "
            "backward pass; leave precision out."
        )


def check_dense(program: StepProgram) -> None:
    """Refuse to round the weights of dense connections in a program without any.

    Raises
    ------
    NothingRoundedError
        No connection is dense.
    """
    if not any(connection.kind == "dense" for connection in program.connections):
        raise NothingRoundedError(
            f"{program.name!r} has no dense connection, and a program that does not train rounds only weights of dense connections; "
            "leave precision out."
        )


def half_weights(parameters: Mapping[str, Parameter], connections: Iterable[ConnectionInfo]) -> dict[str, Parameter]:
    """Return `parameters` with the weights of dense connections rounded to float16.

    Raises
    ------
    HalfRangeError
        A weight exceeds the range of float16.
    """
    found = dict(parameters)
    for weight in {c.weight for c in connections if c.kind == "dense" and c.weight is not None}:
        parameter = found[weight]
        largest = float(np.abs(parameter.value).max())
        if largest > LARGEST:
            raise HalfRangeError(
                f"{parameter.label} has a weight of {largest:g}, and the largest float16 number is {LARGEST:g}; leave precision out, or "
                "scale the weights."
            )
        found[weight] = replace(parameter, value=parameter.value.astype(np.float16).astype(np.float32), half=True)
    return found
