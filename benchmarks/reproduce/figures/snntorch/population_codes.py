"""Figures of population codes: accuracy and time of an update over the number of steps T and the number of neurons per class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import fmean
from typing import Any, Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, first_result, spread_note, why_missing

STEPS: Final = (25, 5, 2, 1)
QUICK_STEPS: Final = (10, 1)
GROUPS: Final = (1, 10, 50)
QUICK_GROUPS: Final = (1, 50)
SEEDS, QUICK_SEEDS = 5, 1
REGIME: Final = (
    "Pen strokes as constant values (MNIST was not available): 2,312 inputs, 256 leaky neurons, 10 classes of one or more output neurons, "
    "whose spikes are summed, batch 64, Adam, 10 epochs of 960 samples, snnc's program for the CPU, on this machine. "
)


def code_row(steps: int, group: int, seeds: int) -> Row:
    """Return the row for a number of steps and a number of neurons per class."""
    return Row("population code", {"steps": steps, "group": group, "seeds": seeds})


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each combination of a number of steps and a number of neurons per class."""
    steps, groups, seeds = (QUICK_STEPS, QUICK_GROUPS, QUICK_SEEDS) if quick else (STEPS, GROUPS, SEEDS)
    return tuple(code_row(t, group, seeds) for t in steps for group in groups)


def _points(results: Results, number: Callable[[Mapping[str, Any]], float]) -> tuple[Point, ...]:
    """Return a line for each number of neurons per class."""
    found = []
    for group in GROUPS:
        for steps in sorted({*STEPS, *QUICK_STEPS}):
            if known := first_result(results, partial(code_row, steps, group), (SEEDS, QUICK_SEEDS)):
                seeds, result = known
                missing = why_missing(result)
                note = missing or f"accuracy {spread_note(result['accuracy'], seeds)}"
                series = f"{group} neuron{'s' * (group > 1)} per class (measured)"
                found.append(Point(series, "measured", float(steps), None if missing else number(result), note))
    return tuple(found)


ACCURACY: Final = Figure(
    "population-codes",
    "2211.10725",
    "Population codes: accuracy against T",
    REGIME + "With more neurons per class, fewer steps are enough, down to one.",
    "T, steps",
    "test accuracy, %",
    rows,
    partial(_points, number=lambda result: 100 * fmean(result["accuracy"])),
    log_x=True,
    log_y=False,
    y_zero=False,
)
TIME: Final = Figure(
    "population-codes-time",
    "2211.10725",
    "Population codes: time over T",
    REGIME + "Median of an update.",
    "T, steps",
    "ms per update",
    rows,
    partial(_points, number=lambda result: float(result["update_ms"])),
    log_x=True,
)
