"""Template data for losses and optimisers, the same for the processor and for GPUs."""

from __future__ import annotations

from typing import Any

from snnc.backends.codegen.constants import Constant
from snnc.backends.codegen.printing import c_literal
from snnc.backends.training.moments import moments
from snnc.compiler.losses import Loss, MeanSquaredCount
from snnc.compiler.losses.optimizers import SGD, Adam, Optimizer

Context = dict[str, Any]


def training_context(loss: Loss | None, optimizer: Optimizer | None) -> Context:
    """Return which loss and which optimiser there are, and their numbers: ``settings.hpp``."""
    return {
        "loss": None if loss is None else loss.name,
        "optimizer": None if optimizer is None else optimizer.name,
        "settings": [*_loss_settings(loss), *_optimizer_settings(optimizer)],
    }


def _loss_settings(loss: Loss | None) -> list[Constant]:
    if not isinstance(loss, MeanSquaredCount):
        return []
    return [
        Constant("double", "CORRECT", repr(float(loss.correct_rate)), "Spikes a step that the class of the label should have."),
        Constant("double", "INCORRECT", repr(float(loss.incorrect_rate)), "Spikes a step that the other classes should have."),
    ]


def _optimizer_settings(optimizer: Optimizer | None) -> list[Constant]:
    kept = Constant("int", "MOMENTS", len(moments(optimizer)), "Values that the optimiser keeps for each number of a parameter.")
    match optimizer:
        case Adam():
            return [
                kept,
                Constant("double", "BETA1", repr(float(optimizer.beta1)), "Part that the mean of gradients keeps in an update."),
                Constant("double", "BETA2", repr(float(optimizer.beta2)), "Part that the mean of squared gradients keeps in an update."),
                Constant("float", "EPSILON", c_literal(optimizer.epsilon), "Added to the root of the mean of squares."),
            ]
        case SGD():
            return [kept, Constant("float", "MOMENTUM", c_literal(optimizer.momentum), "Part of the last change that an update repeats.")]
    return []
