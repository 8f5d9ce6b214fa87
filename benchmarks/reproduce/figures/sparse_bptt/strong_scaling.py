"""Figure: strong scaling, with networks of a fixed size on an increasing number of IPUs."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import SNNC, plan_row, throughput

NETS: Final = {"shd-n8-b3-a5": (1, 2, 4, 8, 16), "shd-x4-n8-a5": (4, 8, 16, 32, 64)}
"""Numbers of IPUs for each network; the first is that of the network in the paper's grid."""
QUICK: Final = {"shd-n8-b3-a5": (1, 4, 16)}


def rows(quick: bool) -> tuple[Row, ...]:
    """Return a row for each network and number of IPUs."""
    return tuple(strong_row(net, x) for net, ipus in (QUICK if quick else NETS).items() for x in ipus)


def strong_row(net: str, ipus: int) -> Row:
    """Return the row of a network on a number of IPUs; on the network's own number, other figures use the same row."""
    return plan_row(net, SNNC, None if ipus == NETS[net][0] else ipus)


def points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per network, and of a line of perfect scaling from its first point."""
    found: list[Point] = []
    for net, ipus in NETS.items():
        own: list[Point] = []
        for x in ipus:
            own += throughput(results, [(float(x), net)], SNNC, f"{named(net)} (predicted)", None if x == ipus[0] else x)
        found += own
        if len(own) > 1 and own[0].y is not None and own[0].x == float(ipus[0]):
            perfect = f"perfect scaling from the first point of {named(net).split(', ')[1].removesuffix(' of about 980')} (predicted)"
            found += [Point(perfect, "predicted", float(x), own[0].y * x / ipus[0]) for x in (ipus[0], ipus[-1])]
    return tuple(found)


def named(net: str) -> str:
    """Return the label of the network: the number of its hidden layers and their size."""
    layers = 48 if "-x4-" in net else 12
    return f"snnc's program, {layers} hidden layers of about 980"


FIGURE: Final = Figure(
    "strong-scaling",
    "2311.04386",
    "Strong scaling over 1 to 64 IPUs",
    "SHD inputs, T = 100, batch 24, SGD, capacity 5 %: the network that fills one IPU with 8 neurons per tile, and the one that fills "
    "four, each on that number of IPUs or more. If IPUs wait for each other's spikes, more IPUs do not help.",
    "IPUs",
    "samples/s",
    rows,
    points,
    log_x=True,
)
