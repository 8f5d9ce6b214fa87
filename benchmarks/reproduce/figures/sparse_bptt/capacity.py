"""Figure: smallest capacity that drops no spike (the largest number of spikes of a layer in a step), over the epochs of training."""

from __future__ import annotations

from functools import partial
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, first_result, why_missing

BOUNDS: Final = (None, 0.05)
EPOCHS, QUICK_EPOCHS = 20, 8


def capacity_row(bound: float | None, epochs: int) -> Row:
    """Return the row of a training run of `epochs` epochs; `bound` is the bound on firing rates (None: no bound)."""
    return Row("spikes over training", {"bound": bound, "epochs": epochs})


def rows(quick: bool) -> tuple[Row, ...]:
    """Return the rows of both training runs."""
    return tuple(capacity_row(bound, QUICK_EPOCHS if quick else EPOCHS) for bound in BOUNDS)


def points(results: Results) -> tuple[Point, ...]:
    """Return the points of two lines per training run and layer: the largest and the mean number of spikes."""
    found: list[Point] = []
    for bound in BOUNDS:
        known = first_result(results, partial(capacity_row, bound), (EPOCHS, QUICK_EPOCHS))
        if known is None:
            continue
        _, result = known
        limit = "rates not bounded" if bound is None else f"rates bounded to {100 * bound:g} %"
        for what in ("largest", "mean"):
            for layer, percents in result.get(what, {}).items():
                series = f"{layer}, {limit}: {what} (measured)"
                found += [
                    Point(series, "measured", float(epoch), percent, f"test accuracy {100 * accuracy:.1f} %")
                    for epoch, (percent, accuracy) in enumerate(zip(percents, result["accuracy"], strict=True))
                ]
        if why_missing(result):
            found.append(Point(f"{limit} (measured)", "measured", 0.0, None, why_missing(result)))
    return tuple(found)


FIGURE: Final = Figure(
    "capacity",
    "2311.04386",
    "Required capacity during training",
    "Largest and mean number of spikes of a hidden layer per step and sample, in % of its 256 neurons, over 48 test samples after each "
    "epoch; epoch 0 is before training. A capacity K below the largest number drops spikes. Networks with two hidden layers, trained on "
    "synthetic pen strokes with T = 20 and no limit on spikes, with and without the bound on rates of the published recipe. snnc's "
    "program for the CPU, on this machine; spikes counted by the reference.",
    "epoch",
    "spikes per step, % of the layer",
    rows,
    points,
    log_y=False,
)
