"""Options that a caller of the planner chooses, from the batch size to the number of parts."""

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
"""Number of samples per run or update if the caller chooses none."""


@dataclass(frozen=True)
class PlanOptions:
    """Options of a plan, in addition to the program and the machine. If `batch`, `capacity` or `parts` is None, the planner chooses.

    The program was lowered with `steps`, `loss`, `loss_output`, `optimizer`, `surrogate` and `gradient_window`; a network that is cut into
    parts is lowered again with them. `capacity`, `mode`, `recompute`, `streaming`, `parts`, `precision` and `half` are those of
    :func:`snnc.compile`.
    """

    steps: int | None = None
    batch: int | None = None
    loss: Loss | None = None
    loss_output: str | None = None
    optimizer: Optimizer | None = None
    surrogate: Surrogate | None = None
    gradient_window: tuple[float, float] | None = None
    seed: int = 0
    """Seed of the partitioner, and of stochastic rounding."""
    capacity: int | Capacities | None = None
    mode: Mode = "exact"
    recompute: Recompute = "auto"
    streaming: Streaming = "auto"
    parts: int | None = None
    precision: Precision = "float32"
    half: HalfOption | None = None
    embedded: bool = False
    """Whether PyTorch or PopTorch calls the program, so that neurons keep the author's order."""
    operation: bool = False
    """Whether the program becomes two operations (forward and backward) in the graph of another framework."""

    @property
    def lowering(self) -> dict[str, Any]:
        """Keyword arguments of :func:`~snnc.compiler.lowering.lower.lower`."""
        names = ("loss", "optimizer", "surrogate", "gradient_window", "steps")
        halves = halves_of(self.precision, self.half, trains=self.loss is not None)
        return {name: getattr(self, name) for name in names} | {"half": halves, "rounding": rounding_of(self.half, self.seed)}
