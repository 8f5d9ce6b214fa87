"""Losses of the recorded output of a sequence: cross entropies, squared errors and sums of such terms."""

from __future__ import annotations

from snnc.compiler.losses.base import Loss
from snnc.compiler.losses.named_losses import (
    LOSSES,
    CrossEntropyCount,
    CrossEntropyMaxMembrane,
    CrossEntropyMeanMembrane,
    CrossEntropyRate,
    MeanSquaredCount,
)
from snnc.compiler.losses.text import parse_loss

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
