"""Figure: weak scaling, with networks that grow with the number of IPUs, up to 64 IPUs."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import PUBLISHED, SNNC, plan_row, throughput

IPUS: Final = (1, 2, 4, 8, 16)
PODS: Final = (32, 64)
"""Numbers of IPUs of a POD64; the paper used up to 16."""
QUICK: Final = (1, 4, 16)
SIZES: Final = (2, 4, 8)
QUICK_SIZES: Final = (2, 8)
POD_SIZE: Final = 2
NET: Final = "shd-x{}-n{}-a5"


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each program, number of IPUs and number of neurons per tile; 32 and 64 IPUs have two neurons per tile only."""
    ipus, sizes = (QUICK, QUICK_SIZES) if quick else (IPUS, SIZES)
    chosen = [(x, n) for x in ipus for n in sizes] + [(x, POD_SIZE) for x in (PODS[1:] if quick else PODS)]
    return tuple(plan_row(NET.format(x, n), strategy) for x, n in chosen for strategy in (SNNC, PUBLISHED))


def points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per program and number of neurons per tile; x is the number of IPUs."""
    found: list[Point] = []
    for n in SIZES:
        places = [(float(x), NET.format(x, n)) for x in (*IPUS, *PODS)]
        found += throughput(results, places, SNNC, f"snnc's program, {n} neurons per tile (predicted)")
        found += throughput(results, places, PUBLISHED, f"the paper's program, {n} neurons per tile (predicted by a model of it)")
    return tuple(found)


FIGURE: Final = Figure(
    "scaling",
    "2311.04386",
    "Weak scaling over 1 to 64 IPUs",
    "SHD inputs; the layers of one IPU, times the number of IPUs; T = 100, batch 24, SGD, capacity 5 %. The network for 16 IPUs "
    "with 8 neurons per tile has 188,284 neurons and 184 million weights, about as many as the one for 64 IPUs with 2. The paper used up "
    "to 16 IPUs; 32 and 64 are a POD64. A horizontal line is perfect scaling: the same samples/s for a network that grows with the number "
    "of IPUs.",
    "IPUs",
    "samples/s",
    rows,
    points,
    log_x=True,
)
