"""Figure: throughput of the 12 runs of the published log, and predictions for snnc's program and for the published one."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import PUBLISHED, SNNC, plan_row, throughput

QUICK: Final = ("logged-h2-a1", "logged-h3-a5", "logged-h5-a10")
BATCH: Final = 48
LOG: Final = "IPU, the paper's program (published log)"


def rows(quick: bool) -> tuple[Row, ...]:
    """Return two rows for each logged network: predicted for snnc's program, and for the published program."""
    nets = QUICK if quick else tuple(run.name for run in logged_runs())
    return tuple(plan_row(net, strategy) for net in nets for strategy in (SNNC, PUBLISHED))


def points(results: Results) -> tuple[Point, ...]:
    """Return the log and the predictions on the GC200."""
    places, log = [], []
    for run in logged_runs():
        x, note = run.name.removeprefix("logged-"), f"{run.logged_ms:g} ms per step, whole ms as printed by Keras"
        places.append((x, run.name))
        log.append(Point(LOG, "published", x, 1e3 * BATCH / run.logged_ms, note, {"net": run.name}))
    return (*log, *throughput(results, places, PUBLISHED), *throughput(results, places, SNNC))


FIGURE: Final = Figure(
    "layers",
    "2311.04386",
    "Training throughput against layers and activity: the published log",
    "N-MNIST inputs, 2 to 5 hidden layers (h) that fill one IPU, capacity 1, 5 and 10 % (a), T = 100, batch 48, Adam. The log "
    "records neither its clock nor its activity: the predictions use the activity of a simulation with the logged weight limits, and 1.33 "
    "GHz.",
    "hidden layers and capacity",
    "samples/s",
    rows,
    points,
)
