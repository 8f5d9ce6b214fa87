"""Loss functions over the recorded output of a sequence, one file a loss."""

from __future__ import annotations

from snnc.compiler.losses.base import Loss
from snnc.compiler.losses.ce_count import CrossEntropyCount
from snnc.compiler.losses.ce_max_membrane import CrossEntropyMaxMembrane
from snnc.compiler.losses.ce_mean_membrane import CrossEntropyMeanMembrane
from snnc.compiler.losses.ce_rate import CrossEntropyRate
from snnc.compiler.losses.mse_count import MeanSquaredCount
from snnc.compiler.losses.parse import LOSSES, parse_loss

__all__ = [
    "LOSSES",
    "CrossEntropyCount",
    "CrossEntropyMaxMembrane",
    "CrossEntropyMeanMembrane",
    "CrossEntropyRate",
    "Loss",
    "MeanSquaredCount",
    "parse_loss",
]
