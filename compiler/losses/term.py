"""Terms of composed losses: a statistic of outputs over time, and a criterion, which may compare the statistic with targets.

Targets of a batch of B samples with T steps and n outputs:

=================  ==============================  ==================================
kind               array                           ignored
=================  ==============================  ==================================
``class``          [B] class indices
``step_classes``   [B, T] class indices            steps of class -1
``values``         [B, n] numbers                  NaN
``step_values``    [B, T, n] numbers               NaN
=================  ==============================  ==================================

A cross entropy gives one number per sample, an equation one per output; with the statistic ``steps``, both do so at every step. The
loss of a sample is the mean of its numbers that are not ignored, times :meth:`Term.scale`; the loss of a batch is the mean over samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias, get_args

from snnc.compiler.errors import EquationError, UnknownLossError
from snnc.compiler.losses.base import LossPort
from snnc.compiler.neurons.expression import Assignment, parse_expression, symbols

Statistic: TypeAlias = Literal["count", "mean", "max", "last", "first_spike", "steps"]
"""Sum, mean or maximum of an output over the steps, its value at the last step, its first step with a spike, or its values at all steps.
The first step with a spike is the last step for an output that does not fire."""
TargetKind: TypeAlias = Literal["class", "step_classes", "values", "step_values"]
Inverse: TypeAlias = Literal["negate", "reciprocal"]
STATISTICS: Final = get_args(Statistic)
CROSS_ENTROPY: Final = "cross_entropy"
SQUARED_ERROR: Final = "(x - y) * (x - y)"


@dataclass(frozen=True)
class Term:
    """A statistic with a criterion and a weight."""

    statistic: Statistic  # of each output over time
    criterion: str = CROSS_ENTROPY
    """``"cross_entropy"``, or an equation in ``x``, the statistic of an output, and ``y``, its target; ``y`` may be absent."""
    port: LossPort = "membrane"  # port that the term reads: spikes or membrane potentials
    weight: float = 1.0
    of: str | None = None  # population or ``"population.port"`` that the term reads; None: the output of the network
    # For class targets: ``y`` of the output of the right class, and of all others. For squared errors of counts, they are rates:
    # ``int(T * on * number of outputs of a class)`` spikes. For first spikes, they are steps; negative ones count from the end.
    on: float = 1.0
    off: float = 0.0
    inverse: Inverse = "negate"  # scores of first spikes at step t under cross entropy: ``-t``, or ``1/(t + 1)``

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise UnknownLossError(f"the statistic {self.statistic!r} of a loss is unknown; use one of {', '.join(STATISTICS)}.")
        if self.inverse not in get_args(Inverse):
            raise UnknownLossError(f"inverse is {self.inverse!r}; it must be one of {', '.join(get_args(Inverse))}.")
        if not all(math.isfinite(number) for number in (self.weight, self.on, self.off)):
            raise UnknownLossError(f"a number of a loss is not finite: weight {self.weight}, on {self.on}, off {self.off}.")
        if self.squares_counts and not (0 <= self.on <= 1 and 0 <= self.off <= 1):
            raise UnknownLossError(f"rates of squared errors of counts must be between 0 and 1; they are on={self.on:g}, off={self.off:g}.")
        _ = self.equations  # so that a wrong equation raises an error here

    @property
    def softmax(self) -> bool:
        """Whether the term is a cross entropy."""
        return self.criterion == CROSS_ENTROPY

    @property
    def squares_counts(self) -> bool:
        """Whether the term is a squared error of counts, for which class targets are rates."""
        return self.statistic == "count" and self.criterion == SQUARED_ERROR

    @property
    def reads_targets(self) -> bool:
        """Whether the term reads targets."""
        return self.softmax or "y" in symbols(parse_expression(self.criterion))

    @cached_property
    def equations(self) -> tuple[Assignment, ...]:
        """Assignments of ``loss`` and of ``slope``, its derivative with respect to ``x``; empty for a cross entropy.

        A criterion that is not an equation in x and y raises an UnknownLossError.
        """
        if self.softmax:
            return ()
        try:
            value = parse_expression(self.criterion)
            names = set(symbols(value))
            if names - {"x", "y"}:
                raise EquationError(f"it reads {', '.join(sorted(names - {'x', 'y'}))}; it may read x, the output, and y, its target.")
            if "x" not in names:
                raise EquationError("it does not read x, the output.")
            # Importing SymPy takes half a second; inference does not need it.
            from snnc.compiler.neurons.adjoint import slope_of

            return (Assignment("loss", value), *slope_of(value, "x", "slope"))
        except EquationError as error:
            raise UnknownLossError(f"the loss {self.criterion!r} is not an equation in x and y: {error.text}") from None

    def scale(self, steps: float) -> float:
        """Return the factor of a sample with `steps` steps: 1, or snnTorch's for squared errors of counts and of first spikes."""
        if self.criterion != SQUARED_ERROR:
            return 1.0
        return {"count": 1.0 / steps, "first_spike": 1.0 / (steps * steps)}.get(self.statistic, 1.0)
