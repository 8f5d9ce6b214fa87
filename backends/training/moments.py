"""Names of the optimiser's state."""

from __future__ import annotations

from snnc.compiler.losses.optimizers import Optimizer
from snnc.compiler.losses.update_rules import rule_of


def moments(optimizer: Optimizer | None) -> list[str]:
    """Return the names of the values that the optimiser stores for each parameter."""
    return [] if optimizer is None else list(rule_of(optimizer).moments)
