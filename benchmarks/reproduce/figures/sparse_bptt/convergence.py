"""Figures: accuracy after each epoch for each capacity, and with and without a schedule of the second threshold.

The second threshold is the lower end of the gradient window, in which neurons receive a gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.sparse_runs import DATA, DEFAULT_WEIGHTS, NARROW, SHARES, sparse_runs

SCHEDULES: Final = {
    "dense": "no capacity, no window",
    "10 %": "10 %, second threshold on the published schedule",
    NARROW: "10 %, schedule off: at its end value from the start",
    DEFAULT_WEIGHTS: "10 %, schedule off, PyTorch's default weights",
}
"""Labels of the training settings with and without the schedule."""
CAPACITIES: Final = {training: "dense" if training == "dense" else f"at most {training} of a layer" for training in SHARES}
"""Labels of the training settings by capacity."""
REGIME: Final = (
    "Test accuracy after each epoch, mean over seeds; the range is in the table. Four layers of weights (hidden layers of 1,024, 512 and "
    "256), 960 training samples, T = 50, batch 48, Adam. N-MNIST and SHD were not available: the data are synthetic. "
)


def no_rows(quick: bool) -> tuple[Row, ...]:
    """Return no rows: the runs took hours, and their results are stored."""
    del quick
    return ()


def _points(results: Results, data: str, names: Mapping[str, str]) -> tuple[Point, ...]:
    """Return the points of one line per training setting in `names`, which has the labels."""
    del results
    runs = sparse_runs(data)
    return tuple(
        Point(f"{name} (measured)", "measured", float(epoch), mean, f"{spread}; {runs[training].origin}", {"data": data})
        for training, name in names.items()
        if training in runs
        for epoch, (mean, spread) in enumerate(zip(runs[training].mean, runs[training].spread, strict=True), 1)
    )


def _figure(data: str) -> Figure:
    return Figure(
        f"convergence-{data}",
        "2311.04386",
        f"Convergence for each capacity: {DATA[data]}",
        REGIME + "In a step, at most the given share of a hidden layer's neurons send spikes. The second threshold starts at -99 and "
        "moves half of the remaining way to -0.1 with each update.",
        "epoch",
        "test accuracy, %",
        no_rows,
        partial(_points, data=data, names=CAPACITIES),
        log_y=False,
    )


STROKES: Final = _figure("strokes")
WORDS: Final = _figure("words")
SCHEDULE: Final = Figure(
    "schedules",
    "2311.04386",
    "Schedule of the second threshold on and off",
    REGIME + "Pen strokes. With the schedule all neurons receive a gradient at first, and the window narrows to 0.1 below the threshold; "
    "without it, the window is narrow from the first update. With weights that make every layer fire, the network learns in both cases; "
    "with default weights (few neurons near the threshold) it does not learn without the schedule.",
    "epoch",
    "test accuracy, %",
    no_rows,
    partial(_points, data="strokes", names=SCHEDULES),
    log_y=False,
)
