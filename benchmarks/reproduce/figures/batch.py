"""Figure: throughput against the batch size, on one to four IPUs."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import SNNC, plan_row, throughput

BATCHES: Final = (48, 96, 192, 384)
IPUS: Final = (1, 2, 4)
NET: Final = "shd-x{}-n2-a5-B{}"


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each batch size and number of IPUs; in a quick run only for one IPU."""
    return tuple(plan_row(NET.format(x, b)) for x in ((1,) if quick else IPUS) for b in BATCHES)


def points(results: Results) -> tuple[Point, ...]:
    """Return a line for each number of IPUs."""
    found: list[Point] = []
    for x in IPUS:
        label = f"{x} IPU{'s' if x > 1 else ''}, snnc's program (predicted)"
        found += throughput(results, [(float(b), NET.format(x, b)) for b in BATCHES], SNNC, label)
    return tuple(found)


FIGURE: Final = Figure(
    "batch",
    "2311.04386",
    "Training throughput against the batch size",
    "SHD inputs, 2 neurons per tile, three hidden layers per IPU, T = 100, SGD, capacity 5 %.",
    "samples per batch",
    "samples/s",
    rows,
    points,
    log_x=True,
)
