"""Options of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from snnc.compiler.ir.plan import Mode, Precision, Recompute, Streaming
from snnc.compiler.losses import Loss
from snnc.compiler.losses.optimizers import Optimizer
from snnc.compiler.lowering.capacities import Capacities
from snnc.compiler.lowering.half_numbers import HalfOption
from snnc.compiler.lowering.halves import halves_of, rounding_of
from snnc.compiler.neurons.surrogates.surrogate import Surrogate

DEFAULT_BATCH: Final = 32


@dataclass(frozen=True)
class PlanOptions:
    """Options of a plan, in addition to the program and the machine; with None, the planner chooses.

    Attributes
    ----------
    steps, loss, loss_output, optimizer, surrogate, gradient_window
        Options with which the program was lowered. A network that is cut into parts is lowered again with these options.
    batch
        Number of samples per run or update.
    seed
        Seed of the partitioner, and of stochastic rounding.
    capacity, mode, recompute, streaming, parts, precision, half
        As for :func:`snnc.compile`.
    embedded
        Whether the plan is a part of a different program, so that neurons keep the author's order.
    operation
        Whether forward and backward pass are two operations in the graph of another framework.
    """

    steps: int | None = None
    batch: int | None = None
    loss: Loss | None = None
    loss_output: str | None = None
    optimizer: Optimizer | None = None
    surrogate: Surrogate | None = None
    gradient_window: tuple[float, float] | None = None
    seed: int = 0
    capacity: int | Capacities | None = None
    mode: Mode = "exact"
    recompute: Recompute = "auto"
    streaming: Streaming = "auto"
    parts: int | None = None
    precision: Precision = "float32"
    half: HalfOption | None = None
    embedded: bool = False
    operation: bool = False

    @property
    def lowering(self) -> dict[str, Any]:
        """Keyword arguments of :func:`~snnc.compiler.lowering.lower.lower`."""
        names = ("loss", "optimizer", "surrogate", "gradient_window", "steps")
        halves = halves_of(self.precision, self.half, trains=self.loss is not None)
        return {name: getattr(self, name) for name in names} | {"half": halves, "rounding": rounding_of(self.half, self.seed)}
