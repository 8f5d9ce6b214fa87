"""The figures, one a file, in the order of the page."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure
from snnc.benchmarks.reproduce.figures import (
    activity,
    batch,
    emulated,
    energy,
    gpu,
    layers,
    memory,
    neuron_models,
    neurons_per_tile,
    scaling,
)

FIGURES: Final[tuple[Figure, ...]] = (
    activity.FIGURE,
    layers.FIGURE,
    gpu.FIGURE,
    neurons_per_tile.FIGURE,
    scaling.FIGURE,
    batch.FIGURE,
    memory.FIGURE,
    emulated.FIGURE,
    energy.FIGURE,
    neuron_models.FIGURE,
)
"""All figures."""
