"""The optimiser's state for each parameter."""

from __future__ import annotations

from snnc.compiler.losses.optimizers import Optimizer
from snnc.compiler.losses.update_rules import rule_of


def moments(optimizer: Optimizer | None) -> list[str]:
    """Names of the optimiser's values for each parameter."""
    return [] if optimizer is None else list(rule_of(optimizer).moments)
