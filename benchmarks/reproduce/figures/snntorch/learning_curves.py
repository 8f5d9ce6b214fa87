"""Figure: learning curves of the neuron models."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, first_result, spread_note, why_missing

MODELS: Final = ("Leaky", "Synaptic", "Lapicque", "Alpha", "RLeaky one to one", "RLeaky all to all", "RSynaptic all to all", "SLSTM")
QUICK: Final = ("Leaky", "Synaptic", "RLeaky all to all")
SEEDS, QUICK_SEEDS = 3, 1


def curve_row(model: str, seeds: int) -> Row:
    """Return the row of a neuron model."""
    return Row("learning curve", {"model": model, "seeds": seeds})


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each neuron model."""
    return tuple(curve_row(model, QUICK_SEEDS if quick else SEEDS) for model in (QUICK if quick else MODELS))


def points(results: Results) -> tuple[Point, ...]:
    """Return a line for each neuron model: test accuracy against epochs, mean of the seeds."""
    found: list[Point] = []
    for model in MODELS:
        known = first_result(results, partial(curve_row, model), (SEEDS, QUICK_SEEDS))
        if known is None:
            continue
        seeds, result = known
        series = f"{model} (measured)"
        if "accuracy" not in result:
            found.append(Point(series, "measured", 1.0, None, why_missing(result)))
        for epoch, accuracy in enumerate(zip(*result.get("accuracy", ()), strict=True), 1):
            found.append(Point(series, "measured", float(epoch), 100 * fmean(accuracy), spread_note(accuracy, seeds)))
    return tuple(found)


FIGURE: Final = Figure(
    "learning-curves",
    "2211.10725",
    "Learning curves of the neuron models",
    "Pen strokes as constant values (MNIST was not available): 2,312 inputs, 256 hidden neurons of the model, 10 outputs, T = 10, "
    "batch 64, Adam, 960 training samples; test accuracy after each epoch, snnc's program for the CPU, on this machine. The "
    "other targets compute the same gradients (tested).",
    "epoch",
    "test accuracy, %",
    rows,
    points,
    log_y=False,
)
