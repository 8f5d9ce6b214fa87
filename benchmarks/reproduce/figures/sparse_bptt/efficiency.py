"""Figure: efficiency of weak and strong scaling, from the rows of the figures :mod:`scaling` and :mod:`strong_scaling`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.plans import PUBLISHED, SNNC, plan_row
from snnc.benchmarks.reproduce.figures.sparse_bptt import scaling, strong_scaling


def rows(quick: bool) -> tuple[Row, ...]:
    """Return the rows of the figures of weak and of strong scaling."""
    return (*scaling.rows(quick), *strong_scaling.rows(quick))


def points(results: Results) -> tuple[Point, ...]:
    """Return the points of one line per network and program, in %; x is the number of IPUs."""
    found: list[Point] = []
    for n in scaling.SIZES:
        for strategy, who in ((SNNC, "snnc's program"), (PUBLISHED, "the paper's program, by a model of it")):
            steps = ((x, results.get(plan_row(scaling.NET.format(x, n), strategy).key)) for x in (*scaling.IPUS, *scaling.PODS))
            found += _efficiencies(f"weak, {n} neurons per tile, {who} (predicted)", steps, strong=False)
    for net, ipus in strong_scaling.NETS.items():
        steps = ((x, results.get(strong_scaling.strong_row(net, x).key)) for x in ipus)
        found += _efficiencies(f"strong, {strong_scaling.named(net)} (predicted)", steps, strong=True)
    return tuple(found)


def _efficiencies(series: str, steps: Iterable[tuple[int, object]], *, strong: bool) -> list[Point]:
    """Return the first step time divided by each step time, in %; for strong scaling, also divided by the ratio of the numbers of IPUs."""
    known = [(x, float(step["step_ms"])) for x, step in steps if isinstance(step, dict) and step.get("fits")]
    if len(known) < 2:
        return []
    first, ms = known[0]
    percents = [100 * ms / own * (first / x if strong else 1.0) for x, own in known]
    return [Point(series, "predicted", float(x), y, f"{own:.3g} ms per step") for (x, own), y in zip(known, percents, strict=True)]


FIGURE: Final = Figure(
    "efficiency",
    "2311.04386",
    "Scaling efficiency",
    "For the two figures above; the smallest number of IPUs with a prediction has 100 %. Weak: the step time on that number divided by "
    "the step time of the larger network on more IPUs. Strong: the same ratio for one network, divided by the ratio of the numbers of "
    "IPUs.",
    "IPUs",
    "efficiency, %",
    rows,
    points,
    log_x=True,
    log_y=False,
)
