"""Figures of snnTorch's neuron models in networks for MNIST: throughput over the batch, throughput and memory in float32 and float16."""

from __future__ import annotations

from functools import partial
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.neuron_models import MODELS, Precision

BATCHES: Final = (16, 32, 64, 128, 256)
QUICK_BATCHES: Final = (32, 128)
QUICK_MODELS: Final = tuple(model for model in MODELS if model not in ("Lapicque", "Alpha"))
QUOTED: Final = 60_000
"""Samples/s of Leaky at batch 128, from the history of the paper's public repository."""
PRECISION_BATCH: Final = 32
QUICK_FLOAT16: Final = ("Leaky", "Synaptic", "RLeaky one to one", "RLeaky all to all", "Leaky, convolution")
"""Models of a quick run in both precisions; SLSTM and SConv2dLSTM, which take longest to map, are not among them."""
PRECISIONS: Final[tuple[Precision, ...]] = ("float32", "float16")


def neuron_row(model: str, batch: int, precision: Precision = "float32") -> Row:
    """Return the row of one neuron model, batch and precision."""
    return Row("neuron", {"model": model, "batch": batch, "precision": precision})


def _points(results: Results) -> tuple[Point, ...]:
    note = "about 60,000 samples/s, from the public repository's history"
    points = [Point("Leaky, snnTorch for IPUs (published)", "published", 128.0, QUOTED, note)]
    for model in MODELS:
        for batch in BATCHES:
            result = results.get(neuron_row(model, batch).key)
            if result is None:
                continue
            note = why_missing(result) or f"{model}, batch {batch}: {result['step_ms']:.3g} ms per step"
            points.append(Point(f"{model} (predicted)", "predicted", float(batch), result.get("samples_per_s"), note, {"model": model}))
    return tuple(points)


def _precision_rows(quick: bool) -> tuple[Row, ...]:
    models = QUICK_FLOAT16 if quick else MODELS
    return tuple(neuron_row(model, PRECISION_BATCH, precision) for model in models for precision in PRECISIONS)


def _precision_points(results: Results, key: str, unit: float) -> tuple[Point, ...]:
    points = []
    for model in MODELS:
        for precision in PRECISIONS:
            result = results.get(neuron_row(model, PRECISION_BATCH, precision).key)
            if result is not None:
                half = f"; float16: {result['half']}" if "half" in result else ""
                note = why_missing(result) or f"{result['step_ms']:.3g} ms per step{half}"
                number = result[key] / unit if key in result else None
                points.append(Point(f"{precision} (predicted)", "predicted", model, number, note, {"model": model}))
    return tuple(points)


THROUGHPUT: Final = Figure(
    "neuron-models",
    "Training throughput of snnTorch's neuron models",
    "MNIST as constant values: 784 inputs, 1,000 hidden neurons of the model, 10 outputs, T = 25, Adam, float32, one IPU (GC200), "
    "assumed activity 5 %. In recurrent models, each neuron feeds back to itself (one to one) or to all neurons (all to all).",
    "samples per batch",
    "samples/s",
    _points,
    lambda quick: tuple(neuron_row(m, b) for m in (QUICK_MODELS if quick else MODELS) for b in (QUICK_BATCHES if quick else BATCHES)),
    paper="2211.10725",
    log_x=True,
)
CAPTION: Final = (
    "Networks for MNIST: 784 inputs, 1,000 hidden neurons (convolutions: 16 maps of 14 x 14), 10 outputs, T = 25, batch "
    f"{PRECISION_BATCH}, Adam, one IPU (GC200), assumed activity 5 %. float16: weights (rounded stochastically), histories and deltas, as "
    "far as the network allows; sums are float32, and snnc's codelets do not use float16 arithmetic, so memory falls more than time. "
)
TIME: Final = Figure(
    "precision",
    "Kinds of recurrence, float32 and float16: throughput",
    CAPTION + "In recurrent models, each neuron feeds back to itself (one to one) or to all neurons (all to all).",
    "neuron model",
    "samples/s",
    partial(_precision_points, key="samples_per_s", unit=1.0),
    _precision_rows,
    paper="2211.10725",
)
MEMORY: Final = Figure(
    "precision-memory",
    "Kinds of recurrence, float32 and float16: memory",
    CAPTION + "Shown is the fullest tile; a tile has 624 KiB.",
    "neuron model",
    "KiB on the fullest tile",
    partial(_precision_points, key="peak_tile_bytes", unit=2.0**10),
    _precision_rows,
    paper="2211.10725",
    log_y=False,
)
