"""Figures: time and memory of each neuron model and kind of recurrence, in float32 and float16."""

from __future__ import annotations

from functools import partial
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.figures.snntorch.neuron_models import neuron_row
from snnc.benchmarks.reproduce.neuron_models import MODELS, Precision

BATCH: Final = 32
QUICK: Final = ("Leaky", "Synaptic", "RLeaky one to one", "RLeaky all to all", "Leaky, convolution")
"""Models of a quick run; SLSTM and SConv2dLSTM, which take longest to map, are not among them."""
PRECISIONS: Final[tuple[Precision, ...]] = ("float32", "float16")


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each model in each precision."""
    return tuple(neuron_row(model, BATCH, precision) for model in (QUICK if quick else MODELS) for precision in PRECISIONS)


def _points(results: Results, key: str, unit: float) -> tuple[Point, ...]:
    """Return the points of one series per precision: `key` of the results, divided by `unit`."""
    found = []
    for model in MODELS:
        for precision in PRECISIONS:
            result = results.get(neuron_row(model, BATCH, precision).key)
            if result is not None:
                half = f"; float16: {result['half']}" if "half" in result else ""
                note = why_missing(result) or f"{result['step_ms']:.3g} ms per step{half}"
                number = result[key] / unit if key in result else None
                found.append(Point(f"{precision} (predicted)", "predicted", model, number, note, {"model": model}))
    return tuple(found)


CAPTION: Final = (
    f"Networks for MNIST: 784 inputs, 1,000 hidden neurons (convolutions: 16 maps of 14 x 14), 10 outputs, T = 25, batch {BATCH}, Adam, "
    "one IPU (GC200), assumed activity 5 %. float16: weights (rounded stochastically), histories and deltas, as far as the network "
    "allows; sums are float32, and snnc's codelets do not use float16 arithmetic, so memory falls more than time. "
)
TIME: Final = Figure(
    "precision",
    "2211.10725",
    "Kinds of recurrence, float32 and float16: throughput",
    CAPTION + "In recurrent models, each neuron feeds back to itself (one to one) or to all neurons (all to all).",
    "neuron model",
    "samples/s",
    rows,
    partial(_points, key="samples_per_s", unit=1.0),
)
MEMORY: Final = Figure(
    "precision-memory",
    "2211.10725",
    "Kinds of recurrence, float32 and float16: memory",
    CAPTION + "Shown is the fullest tile; a tile has 624 KiB.",
    "neuron model",
    "KiB on the fullest tile",
    rows,
    partial(_points, key="peak_tile_bytes", unit=2.0**10),
    log_y=False,
)
