"""Loss functions over the recorded output of a sequence, by name: cross entropies and squared errors."""

from __future__ import annotations

from snnc.compiler.losses.base import Loss
from snnc.compiler.losses.cross_entropy import CrossEntropyCount, CrossEntropyMaxMembrane, CrossEntropyMeanMembrane, CrossEntropyRate
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
