"""Precisions of the compared engines below float32; an engine's mode names its precision.

``tf32`` rounds the factors of products to 11 significant bits. ``bfloat16`` and ``float16`` are the formats of the factors and results of
products, which are summed in float32. States of neurons, parameters and moments are float32 in every precision.
"""

from __future__ import annotations

from typing import Final

TF32: Final = "tf32"
SHORT: Final = ("bfloat16", "float16")
"""Formats of 16 bits, by the names that frameworks use."""
LOSS_SCALE: Final = {"float16": 1024.0}
"""Constant factor of the loss before the backward pass, because deltas underflow in float16; gradients are divided by it."""


def short_format(mode: str) -> str | None:
    """Return the 16-bit format that a mode names; None for all others."""
    return mode if mode in SHORT else None
