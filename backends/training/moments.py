"""The optimiser's state for each parameter."""

from __future__ import annotations

from snnc.compiler.losses.optimizers import Adam, Optimizer


def moments(optimizer: Optimizer | None) -> list[str]:
    """Names of the optimiser's values for each parameter."""
    if isinstance(optimizer, Adam):
        return ["moment1", "moment2"]
    return ["moment1"] if optimizer is not None and optimizer.momentum != 0 else []
