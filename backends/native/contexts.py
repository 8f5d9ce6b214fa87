"""The data that the templates of losses and optimisers are rendered with, for the CPU and CUDA backends."""

from __future__ import annotations

from typing import Any

from snnc.backends.codegen.constants import CppConstant
from snnc.backends.codegen.updates import printed_rule
from snnc.backends.native.composed_loss import composed_context
from snnc.compiler.losses import Loss, MeanSquaredCount
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.optimizers import Optimizer

Context = dict[str, Any]


def training_context(loss: Loss | None, optimizer: Optimizer | None, holder: str = "") -> Context:
    """Return the template data of the loss and its constants (``settings.hpp``), and of the optimiser's equations (``optimizer.hpp``).

    See :func:`~snnc.backends.codegen.updates.printed_rule` for `holder`.
    """
    settings = []
    if isinstance(loss, MeanSquaredCount):
        settings = [
            CppConstant("double", "CORRECT", repr(float(loss.correct_rate)), "Desired spikes per step of the label's class."),
            CppConstant("double", "INCORRECT", repr(float(loss.incorrect_rate)), "Desired spikes per step of the other classes."),
        ]
    return {
        "loss": None if loss is None else loss.name,
        "composed": composed_context(loss) if isinstance(loss, Composed) else None,
        "rule": None if optimizer is None else printed_rule(optimizer, holder),
        "settings": settings,
    }
