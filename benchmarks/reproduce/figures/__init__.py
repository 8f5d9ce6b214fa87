"""All figures, in the order of the page; one module per figure or group of figures."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure
from snnc.benchmarks.reproduce.figures import batch, emulated, energy, gpu, gpu_activity, sensitivity
from snnc.benchmarks.reproduce.figures.snntorch import learning_curves, neuron_models, population_codes, precision
from snnc.benchmarks.reproduce.figures.sparse_bptt import (
    accuracy,
    activity,
    capacity,
    convergence,
    depth,
    efficiency,
    layers,
    memory,
    neurons_per_tile,
    scaling,
    strong_scaling,
    tile_map,
)

FIGURES: Final[tuple[Figure, ...]] = (
    activity.FIGURE,
    gpu_activity.FIGURE,
    layers.FIGURE,
    gpu.FIGURE,
    neurons_per_tile.FIGURE,
    scaling.FIGURE,
    strong_scaling.FIGURE,
    efficiency.FIGURE,
    batch.FIGURE,
    memory.FIGURE,
    tile_map.FIGURE,
    accuracy.FIGURE,
    convergence.STROKES,
    convergence.WORDS,
    depth.FIGURE,
    convergence.SCHEDULE,
    capacity.FIGURE,
    emulated.FIGURE,
    sensitivity.FIGURE,
    energy.FIGURE,
    neuron_models.FIGURE,
    precision.TIME,
    precision.MEMORY,
    population_codes.ACCURACY,
    population_codes.TIME,
    learning_curves.FIGURE,
)
