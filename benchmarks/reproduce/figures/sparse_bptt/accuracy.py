"""Figure: accuracy at the end of training over the capacity, the maximum share of a layer's neurons whose spikes are sent in a step."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results
from snnc.benchmarks.reproduce.figures.sparse_bptt.convergence import REGIME, no_rows
from snnc.benchmarks.reproduce.sparse_runs import DATA, SHARES, sparse_runs


def points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per data set: the mean accuracy over seeds at the last epoch."""
    del results
    found = []
    for data, label in DATA.items():
        runs = sparse_runs(data)
        for training, share in SHARES.items():
            if training in runs:
                own = runs[training]
                note = f"{own.spread[-1]}; {own.dropped:.3g} dropped spikes per sample and step; {own.origin}"
                found.append(Point(f"{label} (measured)", "measured", share, own.mean[-1], note, {"data": data, "training": training}))
    return tuple(found)


FIGURE: Final = Figure(
    "accuracy",
    "2311.04386",
    "Accuracy after training over the capacity",
    REGIME + "100 % is dense training: no capacity and no gradient window.",
    "capacity K, % of a layer",
    "test accuracy at the last epoch, %",
    no_rows,
    points,
    log_x=True,
    log_y=False,
    y_zero=False,
)
