"""Figure: accuracy against the number of hidden layers, dense and with a capacity."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, first_result, spread_note, why_missing

LAYERS: Final = (1, 2, 3, 4)
QUICK: Final = (1, 3)
PERCENTS: Final = (None, 10.0, 5.0)
QUICK_PERCENTS: Final = (None, 5.0)
SEEDS, QUICK_SEEDS = 3, 1


def depth_row(layers: int, percent: float | None, seeds: int) -> Row:
    """Return the row for a number of hidden layers and a capacity."""
    return Row("depth", {"layers": layers, "percent": percent, "seeds": seeds})


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each depth and capacity."""
    layers, percents, seeds = (QUICK, QUICK_PERCENTS, QUICK_SEEDS) if quick else (LAYERS, PERCENTS, SEEDS)
    return tuple(depth_row(n, percent, seeds) for n in layers for percent in percents)


def points(results: Results) -> tuple[Point, ...]:
    """Return a line for each capacity."""
    found = []
    for percent in PERCENTS:
        series = "dense (measured)" if percent is None else f"at most {percent:g} % of a layer (measured)"
        for layers in LAYERS:
            if known := first_result(results, partial(depth_row, layers, percent), (SEEDS, QUICK_SEEDS)):
                seeds, result = known
                missing = why_missing(result)
                y = None if missing else 100 * fmean(result["accuracy"])
                found.append(Point(series, "measured", float(layers), y, missing or spread_note(result["accuracy"], seeds)))
    return tuple(found)


FIGURE: Final = Figure(
    "depth",
    "2311.04386",
    "Accuracy over depth",
    "Pen strokes as events (N-MNIST was not available): hidden layers of 256 neurons, T = 20, batch 48, Adam, 10 epochs of 960 "
    "samples, the published schedule and a bound on rates; snnc's program for the CPU, on this machine.",
    "hidden layers",
    "test accuracy, %",
    rows,
    points,
    log_y=False,
    y_zero=False,
)
