"""Figures: weak scaling (networks that grow with the number of IPUs), strong scaling (networks of a fixed size), and their efficiency."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import PUBLISHED, SNNC, plan_row, throughput

IPUS: Final = (1, 2, 4, 8, 16)
PODS: Final = (32, 64)
"""Numbers of IPUs of a POD64, with POD_SIZE neurons per tile; the paper used up to 16."""
QUICK: Final = (1, 4, 16)
SIZES: Final = (2, 4, 8)
"""Numbers of neurons per tile."""
QUICK_SIZES: Final = (2, 8)
POD_SIZE: Final = 2
NET: Final = "shd-x{}-n{}-a5"
PROGRAMS: Final = {SNNC: ("snnc's program", "(predicted)"), PUBLISHED: ("the paper's program", "(predicted by a model of it)")}
"""Program and note in the label of a line, by strategy."""
FIXED: Final = {"shd-n8-b3-a5": (1, 2, 4, 8, 16), "shd-x4-n8-a5": (4, 8, 16, 32, 64)}
"""Numbers of IPUs for each network of a fixed size; the first is the number that its name states: 4 for ``x4``, 1 without an ``x``."""
QUICK_FIXED: Final = {"shd-n8-b3-a5": (1, 4, 16)}


def _weak_rows(quick: bool) -> tuple[Row, ...]:
    ipus, sizes = (QUICK, QUICK_SIZES) if quick else (IPUS, SIZES)
    chosen = [(x, n) for x in ipus for n in sizes] + [(x, POD_SIZE) for x in (PODS[1:] if quick else PODS)]
    return tuple(plan_row(NET.format(x, n), strategy) for x, n in chosen for strategy in PROGRAMS)


def _weak_points(results: Results) -> tuple[Point, ...]:
    points: list[Point] = []
    for n in SIZES:
        places = [(float(x), NET.format(x, n)) for x in (*IPUS, *PODS)]
        for strategy, (program, note) in PROGRAMS.items():
            points += throughput(results, places, strategy, f"{program}, {n} neurons per tile {note}")
    return tuple(points)


def strong_row(net: str, ipus: int) -> Row:
    """Return the row of a network on a number of IPUs; on the network's own number, other figures use the same row."""
    return plan_row(net, SNNC, None if ipus == FIXED[net][0] else ipus)


def _strong_rows(quick: bool) -> tuple[Row, ...]:
    return tuple(strong_row(net, x) for net, ipus in (QUICK_FIXED if quick else FIXED).items() for x in ipus)


def _strong_points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per network, and of a line of perfect scaling from its first point."""
    points: list[Point] = []
    for net, ipus in FIXED.items():
        line: list[Point] = []
        for x in ipus:
            line += throughput(results, [(float(x), net)], SNNC, f"snnc's program, {_label(net)} (predicted)", None if x == ipus[0] else x)
        points += line
        if len(line) > 1 and line[0].y is not None and line[0].x == float(ipus[0]):
            perfect = f"perfect scaling from the first point of {_label(net).removesuffix(' of about 980')} (predicted)"
            points += [Point(perfect, "predicted", float(x), line[0].y * x / ipus[0]) for x in (ipus[0], ipus[-1])]
    return tuple(points)


def _label(net: str) -> str:
    return f"{48 if '-x4-' in net else 12} hidden layers of about 980"


def _efficiency_points(results: Results) -> tuple[Point, ...]:
    points: list[Point] = []
    for n in SIZES:
        for strategy, who in ((SNNC, "snnc's program"), (PUBLISHED, "the paper's program, by a model of it")):
            steps = ((x, results.get(plan_row(NET.format(x, n), strategy).key)) for x in (*IPUS, *PODS))
            points += _efficiencies(f"weak, {n} neurons per tile, {who} (predicted)", steps, strong=False)
    for net, ipus in FIXED.items():
        steps = ((x, results.get(strong_row(net, x).key)) for x in ipus)
        points += _efficiencies(f"strong, snnc's program, {_label(net)} (predicted)", steps, strong=True)
    return tuple(points)


def _efficiencies(series: str, steps: Iterable[tuple[int, object]], *, strong: bool) -> list[Point]:
    """Return the first step time divided by each step time, in %; for strong scaling, also divided by the ratio of the numbers of IPUs."""
    known = [(x, float(step["step_ms"])) for x, step in steps if isinstance(step, dict) and step.get("fits")]
    if len(known) < 2:
        return []
    first, first_ms = known[0]
    percents = [100 * first_ms / ms * (first / x if strong else 1.0) for x, ms in known]
    return [Point(series, "predicted", float(x), y, f"{ms:.3g} ms per step") for (x, ms), y in zip(known, percents, strict=True)]


WEAK: Final = Figure(
    "scaling",
    "Weak scaling over 1 to 64 IPUs",
    "SHD inputs; the layers of one IPU, times the number of IPUs; T = 100, batch 24, SGD, capacity 5 %. The network for 16 IPUs "
    "with 8 neurons per tile has 188,284 neurons and 184 million weights, about as many as the one for 64 IPUs with 2. The paper used up "
    "to 16 IPUs; 32 and 64 are a POD64. A horizontal line is perfect scaling: the same samples/s for a network that grows with the number "
    "of IPUs.",
    "IPUs",
    "samples/s",
    _weak_points,
    _weak_rows,
    log_x=True,
)
STRONG: Final = Figure(
    "strong-scaling",
    "Strong scaling over 1 to 64 IPUs",
    "SHD inputs, T = 100, batch 24, SGD, capacity 5 %: the network that fills one IPU with 8 neurons per tile, and the one that fills "
    "four, each on that number of IPUs or more. If IPUs wait for each other's spikes, more IPUs do not help.",
    "IPUs",
    "samples/s",
    _strong_points,
    _strong_rows,
    log_x=True,
)
EFFICIENCY: Final = Figure(
    "efficiency",
    "Scaling efficiency",
    "For the two figures above; the smallest number of IPUs with a prediction has 100 %. Weak: the step time on that number divided by "
    "the step time of the larger network on more IPUs. Strong: the same ratio for one network, divided by the ratio of the numbers of "
    "IPUs.",
    "IPUs",
    "efficiency, %",
    _efficiency_points,
    lambda quick: (*_weak_rows(quick), *_strong_rows(quick)),
    log_x=True,
    log_y=False,
)
