"""Plot compile time and memory against numbers of weights and tiles, with lines of linear growth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from snnc.benchmarks.reproduce.chart import logarithmic
from snnc.exploring.plot import GAP, HEIGHT, LEFT, TOP, WIDTH, Mark, Panel, render
from snnc.report.pictures.palette import LAYERS

MEASURED: Final = LAYERS[0]
LINEAR: Final = "#9aa5b1"
"""Colours of the measured points, and of the line of linear growth."""
Row = Mapping[str, Any]


def draw_growth(rows: Sequence[Row]) -> str:
    """Return a plot of CPU seconds and memory of compiling and emitting, as SVG with logarithmic axes; rows without a plan are skipped."""
    known = [row for row in rows if row.get("fits")]
    panels = [
        _panel(0, "CPU seconds to the emitted project", known, "weights", cpu_seconds),
        _panel(1, "peak memory of the compiler, MiB", known, "weights", lambda row: row["peak_rss_mb"]),
        _panel(2, "CPU seconds to the emitted project", known, "tiles_used", cpu_seconds),
    ]
    legend = [("measured on this machine", MEASURED), ("linear, through the largest", LINEAR)]
    return render("compilation", "weights", panels, legend, "")


def cpu_seconds(row: Row) -> float:
    """Return the CPU seconds of a row, which other work on the machine does not affect; its wall-clock seconds if they are missing."""
    return float(row.get("cpu_s", row["compile_s"]))


def growth(rows: Sequence[Row], over: str) -> float | None:
    """Return the exponent k of ``CPU seconds ~ over ** k``, from a least-squares fit to the logarithms; rows without a plan are omitted.

    `over` is a key of the rows, "weights" or "tiles_used". None: there are fewer than two rows, or `over` varies by less than 2 times.
    """
    known = [row for row in rows if row.get("fits")]
    along = np.log([float(row[over]) for row in known])
    if len(known) < 2 or np.ptp(along) < math.log(2):
        return None
    seconds = np.log([cpu_seconds(row) for row in known])
    return float(np.polyfit(along, seconds, 1)[0])


def _panel(index: int, title: str, known: Sequence[Row], over: str, value: Callable[[Row], float]) -> Panel:
    rows = sorted(known, key=lambda row: (row[over], value(row)))
    left = LEFT + index * (WIDTH + GAP)
    xs, ys = [row[over] for row in rows], [value(row) for row in rows]
    across, up = logarithmic(xs, left, WIDTH), logarithmic(ys, TOP + HEIGHT, -HEIGHT)

    def place(x: float, y: float) -> tuple[float, float]:
        return round(across.place(x), 1), round(up.place(y), 1)

    lines, marks = [], []
    if rows:
        places = list(map(place, xs, ys))
        lines.append((_text(places), MEASURED, False))  # not dashed
        x, y = xs[-1], ys[-1]
        # A line of slope 1 from the largest network down to the edge of the axes, which begin at powers of ten.
        shrink = 10 ** min(math.log10(n) - math.floor(math.log10(min(numbers))) for n, numbers in ((x, xs), (y, ys)))
        lines.append((_text([place(x / shrink, y / shrink), place(x, y)]), LINEAR, True))
        marks = [
            Mark(x, y, MEASURED, f"{row['net']}: {row['weights']:,} weights, {row['compile_s']:.2f} s, {row['peak_rss_mb']:,.0f} MiB", True)
            for (x, y), row in zip(places, rows, strict=True)
        ]
    right, along = left + WIDTH, over.removesuffix("_used")
    return Panel(title, left, up.ticks, across.ticks, right, left + WIDTH / 2, tuple(lines), tuple(marks), along)


def _text(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in places)
