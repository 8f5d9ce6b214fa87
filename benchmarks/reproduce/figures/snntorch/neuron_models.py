"""Figure: throughput of snnTorch's neuron models against the batch size, in networks of 784-1000-10 neurons for MNIST."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.neuron_models import MODELS, Precision

BATCHES: Final = (16, 32, 64, 128, 256)
QUICK: Final = (32, 128)
QUICK_MODELS: Final = tuple(model for model in MODELS if model not in ("Lapicque", "Alpha"))
QUOTED: Final = 60_000
"""Samples/s of Leaky at batch 128, from the history of the paper's public repository."""


def neuron_row(model: str, batch: int, precision: Precision = "float32") -> Row:
    """Return the row of one neuron model, batch and precision."""
    return Row("neuron", {"model": model, "batch": batch, "precision": precision})


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each model and batch size."""
    return tuple(neuron_row(model, batch) for model in (QUICK_MODELS if quick else MODELS) for batch in (QUICK if quick else BATCHES))


def points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per model, and the published point."""
    note = "about 60,000 samples/s, from the public repository's history"
    found = [Point("Leaky, snnTorch for IPUs (published)", "published", 128.0, QUOTED, note)]
    for model in MODELS:
        for batch in BATCHES:
            result = results.get(neuron_row(model, batch).key)
            if result is None:
                continue
            note = why_missing(result) or f"{model}, batch {batch}: {result['step_ms']:.3g} ms per step"
            found.append(Point(f"{model} (predicted)", "predicted", float(batch), result.get("samples_per_s"), note, {"model": model}))
    return tuple(found)


FIGURE: Final = Figure(
    "neuron-models",
    "2211.10725",
    "Training throughput of snnTorch's neuron models",
    "MNIST as constant values: 784 inputs, 1,000 hidden neurons of the model, 10 outputs, T = 25, Adam, float32, one IPU (GC200), "
    "assumed activity 5 %. In recurrent models, each neuron feeds back to itself (one to one) or to all neurons (all to all).",
    "samples per batch",
    "samples/s",
    rows,
    points,
    log_x=True,
)
