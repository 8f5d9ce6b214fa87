"""Numbers that a program stores as float16. Sums are float32.

By default, with precision float16, a program that trains rounds its history. A program for inference has no history, and rounds the weights
of its connections. Weights that are updated stay float32 unless float16 is requested for them: an update below half a unit in the last
place is lost, rounded stochastically, or kept as a remainder, depending on the rounding (:mod:`snnc.compiler.losses.weight_rounding`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import numpy as np

from snnc.compiler.errors import HalfNumbersError, HalfRangeError, NothingRoundedError
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_operations import BackwardOp, DenseInputGradient, InputGradient
from snnc.compiler.ir.step_program import ConnectionInfo, ConnectionKind, Parameter, StepProgram
from snnc.compiler.losses.weight_rounding import LARGEST, WeightRounding
from snnc.compiler.lowering.half_numbers import HalfNumbers, half_text

Half: TypeAlias = Literal["history", "weights", "deltas", "states"]
"""``"history"``: states and values of all steps that the adjoint reads; ``"weights"``: weights of connections in :data:`ROUNDED_KINDS`;
``"deltas"``: values that sources of dense connections read from their targets in the backward pass; ``"states"``: running states
(:mod:`snnc.compiler.lowering.half_states`)."""
ROUNDED_KINDS: Final[frozenset[ConnectionKind]] = frozenset(("dense", "sparse", "convolution", "one_to_one"))
"""Connections whose weights may be float16; weights shared by all neurons, factors of scales and biases are few, and stay float32."""


def halves_of(precision: Precision, half: HalfNumbers | None = None, *, trains: bool) -> tuple[Half, ...]:
    """Return the kinds of numbers that a program stores as float16: those chosen by `half`, or implied by `precision`.

    Raises
    ------
    HalfNumbersError
        An option that only training uses was requested for a program that does not train.
    """
    if half is None:
        if precision != "float16":
            return ()
        return ("history",) if trains else ("weights",)
    if not trains and (half.history or half.deltas or half.weights not in (None, "nearest")):
        raise HalfNumbersError(
            f"half is {half_text(half)!r}, but without training only weights, rounded to the nearest, and states can be float16; "
            "use half='weights', 'states' or 'weights,states', or set a loss (--loss ce_count)."
        )
    kinds: tuple[tuple[Half, bool], ...] = (
        ("history", half.history),
        ("weights", half.weights is not None),
        ("deltas", half.deltas),
        ("states", half.states),
    )
    return tuple(kind for kind, wanted in kinds if wanted)


def rounding_of(half: HalfNumbers | None, seed: int) -> WeightRounding | None:
    """Return the rounding of updates of float16 weights; None without such weights."""
    return None if half is None or half.weights is None else WeightRounding(half.weights, seed)


def check_halves(half: Collection[Half], program: StepProgram) -> None:
    """Check that a program has numbers of each kind that should be float16.

    Raises
    ------
    NothingRoundedError
        No state can be stored as float16, or no connection has weights or deltas that can.
    """
    if "states" in half and not any(p.kernel.halves for p in program.populations):
        raise NothingRoundedError(f"no population of {program.name!r} has a state; leave states out of half.")
    if "history" in half:
        check_past(any(p.kernel.rounded for p in program.populations), program)
    if "weights" in half:
        check_weights(program)
    if "deltas" in half and not any(isinstance(op, DenseInputGradient) and op.half for op in program.backward):
        raise NothingRoundedError(
            f"{program.name!r} has no dense connection whose target returns a gradient only over dense connections, and only deltas "
            "of such targets are rounded; leave deltas out of half."
        )


def half_deltas(program: StepProgram) -> tuple[BackwardOp, ...]:
    """Return the backward operations, with deltas rounded to float16 if only dense connections send them back."""
    others = {op.target for op in program.backward if isinstance(op, InputGradient) and not isinstance(op, DenseInputGradient)}
    return tuple(
        replace(op, half=True) if isinstance(op, DenseInputGradient) and op.target not in others else op for op in program.backward
    )


def check_past(found: bool, program: StepProgram) -> None:
    """Raise an error if no value of the history of `program` can be rounded, that is, if `found` is false.

    Raises
    ------
    NothingRoundedError
        No value can be rounded.
    """
    if not found:
        raise NothingRoundedError(
            f"no population of {program.name!r} stores a value that can be rounded to float16 without changing a decision of the "
            "backward pass; omit precision."
        )


def check_weights(program: StepProgram) -> None:
    """Check that a program has weights that can be rounded.

    Raises
    ------
    NothingRoundedError
        No connection has weights that are rounded.
    """
    if not rounded_weights(program.parameters, program.connections):
        raise NothingRoundedError(
            f"{program.name!r} has no dense, sparse, convolution or one-to-one connection with a weight for each neuron, and only their "
            "weights are rounded; omit precision or half."
        )


def check_dense(program: StepProgram) -> None:
    """Check that a program has dense connections, for a precision that applies only to their products.

    Raises
    ------
    NothingRoundedError
        No connection is dense.
    """
    if not any(connection.kind == "dense" for connection in program.connections):
        raise NothingRoundedError(
            f"{program.name!r} has no dense connection, but only weights of dense connections are rounded; omit precision."
        )


def rounded_weights(parameters: Mapping[str, Parameter], connections: Iterable[ConnectionInfo]) -> list[str]:
    """Return the distinct parameters that are weights of connections in :data:`ROUNDED_KINDS`."""
    found = dict.fromkeys(c.weight for c in connections if c.kind in ROUNDED_KINDS and c.weight is not None)
    return [weight for weight in found if parameters[weight].value.size > 1]


def half_weights(parameters: Mapping[str, Parameter], connections: Iterable[ConnectionInfo]) -> dict[str, Parameter]:
    """Return `parameters` with the weights of connections rounded to float16.

    Raises
    ------
    HalfRangeError
        A weight exceeds the range of float16.
    """
    found = dict(parameters)
    for weight in rounded_weights(parameters, connections):
        parameter = found[weight]
        largest = float(np.abs(parameter.value).max())
        if largest > LARGEST:
            raise HalfRangeError(
                f"{parameter.label} has a weight of {largest:g}, but the largest float16 number is {LARGEST:g}; omit precision, or "
                "scale the weights."
            )
        found[weight] = replace(parameter, value=parameter.value.astype(np.float16).astype(np.float32), half=True)
    return found
