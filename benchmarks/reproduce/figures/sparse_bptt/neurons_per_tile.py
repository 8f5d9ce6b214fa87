"""Figure: throughput against the number of neurons per tile, in networks that fill one IPU."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import DENSE, PUBLISHED, SNNC, dense_bound, plan_row, throughput

SIZES: Final = (2, 4, 8, 16, 32)
QUICK: Final = (2, 8)
NET: Final = "shd-n{}-b3-a5"
STRATEGIES: Final = (SNNC, PUBLISHED, DENSE)


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each number of neurons per tile and each strategy."""
    return tuple(plan_row(NET.format(n), strategy) for n in (QUICK if quick else SIZES) for strategy in STRATEGIES)


def points(results: Results) -> tuple[Point, ...]:
    """Return a line for each strategy."""
    places = [(float(n), NET.format(n)) for n in SIZES]
    lines = [point for strategy in STRATEGIES for point in throughput(results, places, strategy)]
    return (*lines, *(dense_bound(net, n) for n, net in places))


FIGURE: Final = Figure(
    "neurons-per-tile",
    "2311.04386",
    "Training throughput against neurons per tile",
    "SHD inputs (700), hidden layers that fill one IPU with the given number of neurons on each of its 1,471 tiles (three layers "
    "for every two neurons per tile), T = 100, "
    "batch 24, SGD, capacity 5 %. A cross above the axes marks a network that does not fit.",
    "neurons per tile",
    "samples/s",
    rows,
    points,
    log_x=True,
)
