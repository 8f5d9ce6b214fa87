"""All figures, in the order of the page."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure
from snnc.benchmarks.reproduce.figures import emulated, energy, gpu, gpu_activity, sensitivity
from snnc.benchmarks.reproduce.figures.snntorch import neuron_models
from snnc.benchmarks.reproduce.figures.snntorch import training as snntorch_training
from snnc.benchmarks.reproduce.figures.sparse_bptt import memory, scaling, throughput, training

FIGURES: Final[tuple[Figure, ...]] = (
    throughput.ACTIVITY,
    gpu_activity.FIGURE,
    throughput.LAYERS,
    gpu.FIGURE,
    throughput.NEURONS_PER_TILE,
    scaling.WEAK,
    scaling.STRONG,
    scaling.EFFICIENCY,
    throughput.BATCH,
    memory.MEMORY,
    memory.TILE_MAP,
    training.ACCURACY,
    training.STROKES,
    training.WORDS,
    training.DEPTH,
    training.SCHEDULE,
    training.CAPACITY,
    emulated.FIGURE,
    sensitivity.FIGURE,
    energy.FIGURE,
    neuron_models.THROUGHPUT,
    neuron_models.TIME,
    neuron_models.MEMORY,
    snntorch_training.CODE_ACCURACY,
    snntorch_training.CODE_TIME,
    snntorch_training.CURVES,
)
