"""Figures of training runs: learning curves of neuron models; accuracy and time of population codes (several output neurons per class)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import fmean
from typing import Any, Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, first_result, spread_note, why_missing

STEPS: Final = (25, 5, 2, 1)
QUICK_STEPS: Final = (10, 1)
GROUPS: Final = (1, 10, 50)
"""Numbers of output neurons per class."""
QUICK_GROUPS: Final = (1, 50)
SEEDS = 5
REGIME: Final = (
    "Pen strokes as constant values (MNIST was not available): 2,312 inputs, 256 leaky neurons, 10 classes of one or more output neurons, "
    "whose spikes are summed, batch 64, Adam, 10 epochs of 960 samples, snnc's program for the CPU, on this machine. "
)
MODELS: Final = ("Leaky", "Synaptic", "Lapicque", "Alpha", "RLeaky one to one", "RLeaky all to all", "RSynaptic all to all", "SLSTM")
QUICK_MODELS: Final = ("Leaky", "Synaptic", "RLeaky all to all")
CURVE_SEEDS, QUICK_SEEDS = 3, 1


def code_row(steps: int, group: int, seeds: int) -> Row:
    """Return the row of a population code with a number of steps, of neurons per class (`group`), and of seeds."""
    return Row("population code", {"steps": steps, "group": group, "seeds": seeds})


def _code_rows(quick: bool) -> tuple[Row, ...]:
    steps, groups, seeds = (QUICK_STEPS, QUICK_GROUPS, QUICK_SEEDS) if quick else (STEPS, GROUPS, SEEDS)
    return tuple(code_row(t, group, seeds) for t in steps for group in groups)


def _code_points(results: Results, number: Callable[[Mapping[str, Any]], float]) -> tuple[Point, ...]:
    """Return the points of population codes, one line per number of neurons per class; `number` reads y from a result."""
    points = []
    for group in GROUPS:
        for steps in sorted({*STEPS, *QUICK_STEPS}):
            if known := first_result(results, partial(code_row, steps, group), (SEEDS, QUICK_SEEDS)):
                seeds, result = known
                missing = why_missing(result)
                note = missing or f"accuracy {spread_note(result['accuracy'], seeds)}"
                series = f"{group} neuron{'s' * (group > 1)} per class (measured)"
                points.append(Point(series, "measured", float(steps), None if missing else number(result), note))
    return tuple(points)


def _curve_row(model: str, seeds: int) -> Row:
    return Row("learning curve", {"model": model, "seeds": seeds})


def _curve_points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per neuron model: test accuracy after each epoch, mean over seeds."""
    points: list[Point] = []
    for model in MODELS:
        known = first_result(results, partial(_curve_row, model), (CURVE_SEEDS, QUICK_SEEDS))
        if known is None:
            continue
        seeds, result = known
        series = f"{model} (measured)"
        if "accuracy" not in result:
            points.append(Point(series, "measured", 1.0, None, why_missing(result)))
        for epoch, accuracy in enumerate(zip(*result.get("accuracy", ()), strict=True), 1):
            points.append(Point(series, "measured", float(epoch), 100 * fmean(accuracy), spread_note(accuracy, seeds)))
    return tuple(points)


CODE_ACCURACY: Final = Figure(
    "population-codes",
    "Population codes: accuracy against T",
    REGIME + "With more neurons per class, fewer steps are enough, down to one.",
    "T, steps",
    "test accuracy, %",
    partial(_code_points, number=lambda result: 100 * fmean(result["accuracy"])),
    _code_rows,
    paper="2211.10725",
    log_x=True,
    log_y=False,
    y_zero=False,
)
CODE_TIME: Final = Figure(
    "population-codes-time",
    "Population codes: time over T",
    REGIME + "Median time of an update.",
    "T, steps",
    "ms per update",
    partial(_code_points, number=lambda result: float(result["update_ms"])),
    _code_rows,
    paper="2211.10725",
    log_x=True,
)
CURVES: Final = Figure(
    "learning-curves",
    "Learning curves of the neuron models",
    "Pen strokes as constant values (MNIST was not available): 2,312 inputs, 256 hidden neurons of the model, 10 outputs, T = 10, "
    "batch 64, Adam, 960 training samples; test accuracy after each epoch, snnc's program for the CPU, on this machine. The "
    "other targets compute the same gradients (tested).",
    "epoch",
    "test accuracy, %",
    _curve_points,
    lambda quick: tuple(_curve_row(model, QUICK_SEEDS if quick else CURVE_SEEDS) for model in (QUICK_MODELS if quick else MODELS)),
    paper="2211.10725",
    log_y=False,
)
