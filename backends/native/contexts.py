"""Template data for losses and optimisers, the same for the processor and for GPUs."""

from __future__ import annotations

from typing import Any

from snnc.backends.codegen.printing import c_literal
from snnc.backends.training.moments import moments
from snnc.compiler.losses import Loss, MeanSquaredCount
from snnc.compiler.losses.optimizers import SGD, Adam, Optimizer

Context = dict[str, Any]


def loss_context(loss: Loss | None) -> Context:
    """Name and numbers of a loss."""
    found: Context = {"name": None if loss is None else loss.name}
    if isinstance(loss, MeanSquaredCount):
        found |= {"correct": repr(float(loss.correct_rate)), "incorrect": repr(float(loss.incorrect_rate))}
    return found


def optimizer_context(optimizer: Optimizer | None) -> Context:
    """Name and numbers of an optimiser."""
    match optimizer:
        case Adam():
            numbers = {"beta1": repr(float(optimizer.beta1)), "beta2": repr(float(optimizer.beta2))}
            return {"name": "adam", **numbers, "epsilon": c_literal(optimizer.epsilon)}
        case SGD():
            return {"name": "sgd", "momentum": c_literal(optimizer.momentum), "moments": len(moments(optimizer))}
    return {"name": None}
