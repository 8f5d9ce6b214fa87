"""Figure: headline ratios of the predictions if coefficients of the cost model change by 30 %."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.reproduce.figure import Figure, Point, Results
from snnc.benchmarks.reproduce.measured import stored_results
from snnc.benchmarks.sensitivity import BASE, FACTORS, GROUPS, RATIOS, by_key, ratio_of

PREDICTED: Final = "unchanged coefficients (predicted)"
LEAST, MOST = "smallest, one group 30 % up or down (predicted)", "largest, one group 30 % up or down (predicted)"


def points(results: Results) -> tuple[Point, ...]:
    """Return each ratio with unchanged coefficients, and its smallest and largest value under the changes with stored results."""
    del results
    stored = stored_results("sensitivity")
    known, points = by_key(stored.rows), []
    cases = [(group, factor) for group in GROUPS for factor in FACTORS]
    for ratio in RATIOS:
        base = ratio_of(ratio, known, BASE, 1.0)
        moved = {case: value for case in cases if (value := ratio_of(ratio, known, *case)) is not None}
        if base is None or not moved:
            continue
        least, most = min(moved, key=lambda case: moved[case]), max(moved, key=lambda case: moved[case])
        note = f"{ratio.title}; {len(moved)} of {len(cases)} changes; {stored.origin}"
        points.append(Point(PREDICTED, "predicted", ratio.short, base, note))
        for series, (group, factor) in ((LEAST, least), (MOST, most)):
            points.append(Point(series, "predicted", ratio.short, moved[group, factor], f"{ratio.title}; cost of {group} x {factor:g}"))
    return tuple(points)


FIGURE: Final = Figure(
    "sensitivity",
    "Headline ratios under changed coefficients",
    "One of five groups of the cost model's coefficients (cycles of vertices, exchange rate, fragments, barriers, links and host) is "
    "30 % higher or lower at a time, and every network is mapped again. docs/explanation/calibration.md has all numbers, and the ranking "
    "of strategies.",
    "ratio of two step times",
    "ratio",
    points,
)
