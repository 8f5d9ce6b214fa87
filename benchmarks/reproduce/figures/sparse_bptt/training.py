"""Figures of training runs with a capacity (the maximum share of a layer's neurons whose spikes are sent in a step).

They show accuracy over epochs, capacity and depth, with and without a schedule of the second threshold (the lower end of the gradient
window), and the smallest capacity that drops no spike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import fmean
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, first_result, spread_note, why_missing
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
LAYERS: Final = (1, 2, 3, 4)
QUICK_LAYERS: Final = (1, 3)
PERCENTS: Final = (None, 10.0, 5.0)
"""Capacities in % of a layer; None: dense training."""
QUICK_PERCENTS: Final = (None, 5.0)
SEEDS, QUICK_SEEDS = 3, 1
BOUNDS: Final = (None, 0.05)
"""Bounds on firing rates; None: no bound."""
EPOCHS, QUICK_EPOCHS = 20, 8


def _epoch_points(results: Results, data: str, names: Mapping[str, str]) -> tuple[Point, ...]:
    """Return the points of one line per training setting in `names`, which has the labels."""
    del results
    runs = sparse_runs(data)
    return tuple(
        Point(f"{name} (measured)", "measured", float(epoch), mean, f"{spread}; {runs[training].origin}", {"data": data})
        for training, name in names.items()
        if training in runs
        for epoch, (mean, spread) in enumerate(zip(runs[training].mean, runs[training].spread, strict=True), 1)
    )


def _accuracy_points(results: Results) -> tuple[Point, ...]:
    del results
    points = []
    for data, label in DATA.items():
        runs = sparse_runs(data)
        for training, share in SHARES.items():
            if training in runs:
                run = runs[training]
                note = f"{run.spread[-1]}; {run.dropped:.3g} dropped spikes per sample and step; {run.origin}"
                points.append(Point(f"{label} (measured)", "measured", share, run.mean[-1], note, {"data": data, "training": training}))
    return tuple(points)


def _depth_row(layers: int, percent: float | None, seeds: int) -> Row:
    return Row("depth", {"layers": layers, "percent": percent, "seeds": seeds})


def _depth_rows(quick: bool) -> tuple[Row, ...]:
    layers, percents, seeds = (QUICK_LAYERS, QUICK_PERCENTS, QUICK_SEEDS) if quick else (LAYERS, PERCENTS, SEEDS)
    return tuple(_depth_row(n, percent, seeds) for n in layers for percent in percents)


def _depth_points(results: Results) -> tuple[Point, ...]:
    points = []
    for percent in PERCENTS:
        series = "dense (measured)" if percent is None else f"at most {percent:g} % of a layer (measured)"
        for layers in LAYERS:
            if known := first_result(results, partial(_depth_row, layers, percent), (SEEDS, QUICK_SEEDS)):
                seeds, result = known
                missing = why_missing(result)
                y = None if missing else 100 * fmean(result["accuracy"])
                points.append(Point(series, "measured", float(layers), y, missing or spread_note(result["accuracy"], seeds)))
    return tuple(points)


def _capacity_row(bound: float | None, epochs: int) -> Row:
    return Row("spikes over training", {"bound": bound, "epochs": epochs})


def _capacity_points(results: Results) -> tuple[Point, ...]:
    """Return the points of two lines per training run and layer: the largest and the mean number of spikes."""
    points: list[Point] = []
    for bound in BOUNDS:
        known = first_result(results, partial(_capacity_row, bound), (EPOCHS, QUICK_EPOCHS))
        if known is None:
            continue
        _, result = known
        limit = "rates not bounded" if bound is None else f"rates bounded to {100 * bound:g} %"
        for what in ("largest", "mean"):
            for layer, percents in result.get(what, {}).items():
                series = f"{layer}, {limit}: {what} (measured)"
                points += [
                    Point(series, "measured", float(epoch), percent, f"test accuracy {100 * accuracy:.1f} %")
                    for epoch, (percent, accuracy) in enumerate(zip(percents, result["accuracy"], strict=True))
                ]
        if why_missing(result):
            points.append(Point(f"{limit} (measured)", "measured", 0.0, None, why_missing(result)))
    return tuple(points)


def _figure(data: str) -> Figure:
    return Figure(
        f"convergence-{data}",
        f"Convergence for each capacity: {DATA[data]}",
        REGIME + "In a step, at most the given share of a hidden layer's neurons send spikes. The second threshold starts at -99 and "
        "moves half of the remaining way to -0.1 with each update.",
        "epoch",
        "test accuracy, %",
        partial(_epoch_points, data=data, names=CAPACITIES),
        log_y=False,
    )


STROKES: Final = _figure("strokes")
WORDS: Final = _figure("words")
SCHEDULE: Final = Figure(
    "schedules",
    "Schedule of the second threshold on and off",
    REGIME + "Pen strokes. With the schedule all neurons receive a gradient at first, and the window narrows to 0.1 below the threshold; "
    "without it, the window is narrow from the first update. With weights that make every layer fire, the network learns in both cases; "
    "with default weights (few neurons near the threshold) it does not learn without the schedule.",
    "epoch",
    "test accuracy, %",
    partial(_epoch_points, data="strokes", names=SCHEDULES),
    log_y=False,
)
ACCURACY: Final = Figure(
    "accuracy",
    "Accuracy after training over the capacity",
    REGIME + "100 % is dense training: no capacity and no gradient window.",
    "capacity K, % of a layer",
    "test accuracy at the last epoch, %",
    _accuracy_points,
    log_x=True,
    log_y=False,
    y_zero=False,
)
DEPTH: Final = Figure(
    "depth",
    "Accuracy over depth",
    "Pen strokes as events (N-MNIST was not available): hidden layers of 256 neurons, T = 20, batch 48, Adam, 10 epochs of 960 "
    "samples, the published schedule and a bound on rates; snnc's program for the CPU, on this machine.",
    "hidden layers",
    "test accuracy, %",
    _depth_points,
    _depth_rows,
    log_y=False,
    y_zero=False,
)
CAPACITY: Final = Figure(
    "capacity",
    "Required capacity during training",
    "Largest and mean number of spikes of a hidden layer per step and sample, in % of its 256 neurons, over 48 test samples after each "
    "epoch; epoch 0 is before training. A capacity K below the largest number drops spikes. Networks with two hidden layers, trained on "
    "synthetic pen strokes with T = 20 and no limit on spikes, with and without the bound on rates of the published recipe. snnc's "
    "program for the CPU, on this machine; spikes counted by the reference.",
    "epoch",
    "spikes per step, % of the layer",
    _capacity_points,
    lambda quick: tuple(_capacity_row(bound, QUICK_EPOCHS if quick else EPOCHS) for bound in BOUNDS),
    log_y=False,
)
