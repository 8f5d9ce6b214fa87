"""Figure: memory of all tiles of an IPU by category of data."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import plan_row

NETS: Final = ("logged-h2-a1", "logged-h2-a5", "logged-h2-a10", "shd-n2-b3-a5", "shd-n8-b3-a5", "shd-n32-b3-a5")
QUICK: Final = ("logged-h2-a1", "shd-n2-b3-a5", "shd-n8-b3-a5")


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each network; each network fills one IPU."""
    return tuple(plan_row(net) for net in (QUICK if quick else NETS))


def points(results: Results) -> tuple[Point, ...]:
    """Return the points of one series per category of data, in MiB."""
    found = []
    for net in NETS:
        result = results.get(plan_row(net).key, {})
        for kind, size in result.get("memory_bytes", {}).items():
            found.append(Point(f"{kind} (predicted)", "predicted", net, size / 2**20, f"{net}: {size:,} bytes of {kind}", {"net": net}))
    return tuple(found)


FIGURE: Final = Figure(
    "memory",
    "2311.04386",
    "Memory of one IPU by category",
    "Bytes of snnc's program, summed over all tiles (predicted). An IPU (GC200) has 897 MiB.",
    "network",
    "MiB",
    rows,
    points,
    log_y=False,
    stacked=True,
)
