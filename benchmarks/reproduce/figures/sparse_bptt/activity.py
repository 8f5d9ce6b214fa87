"""Figure: throughput against the activity of three hidden layers that fill one IPU."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import DENSE, PUBLISHED, SNNC, dense_bound, plan_row, throughput
from snnc.benchmarks.reproduce.gpu_steps import gpu_points, gpu_row

PERCENTS: Final = (0.5, 1, 2, 2.5, 5, 10, 20, 25, 50)
QUICK: Final = (0.5, 2, 5, 20, 50)
NET: Final = "nmnist-h3-a{:g}"


def rows(quick: bool) -> tuple[Row, ...]:
    """Return rows of the sparse programs for each activity, and one row for each dense program, whose time does not depend on activity."""
    chosen = QUICK if quick else PERCENTS
    sparse = [plan_row(NET.format(p), strategy) for p in chosen for strategy in (SNNC, PUBLISHED)]
    return (*sparse, plan_row(NET.format(5), DENSE), gpu_row(NET.format(5)))


def points(results: Results) -> tuple[Point, ...]:
    """Return a line for each strategy; the lines of programs without events are horizontal."""
    places = [(p, NET.format(p)) for p in PERCENTS]
    ends = [(p, NET.format(5)) for p in (PERCENTS[0], PERCENTS[-1])]
    bound = [dense_bound(net, p) for p, net in ends]
    gpu = [point for p, net in ends for point in gpu_points(results, net, p, rate=True)]
    return (*throughput(results, places, SNNC), *throughput(results, places, PUBLISHED), *throughput(results, ends, DENSE), *bound, *gpu)


FIGURE: Final = Figure(
    "activity",
    "2311.04386",
    "Training throughput against activity",
    "N-MNIST inputs (2,312), three hidden layers of 978 neurons that fill one IPU, T = 100, batch 48, Adam. A hidden layer's "
    "capacity K is the "
    "given share of its neurons, and every window is full. A program without events moves and multiplies every value at any "
    "activity; snnc's does not use the "
    "IPU's matrix units, so the bound of a program that does is also drawn. snnc's GPU program multiplies every value, too. No GPU was "
    "measured over these activities.",
    "capacity K, % of a layer",
    "samples/s",
    rows,
    points,
    log_x=True,
)
