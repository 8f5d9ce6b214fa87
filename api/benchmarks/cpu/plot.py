"""Rows of the suite as a drawing: time and memory of each engine over the workloads, self-contained SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from snnc.benchmarks.cpu.engine import ENTRIES
from snnc.exploring.plot import GAP, HEIGHT, LEFT, TOP, WIDTH, Mark, Panel, render, short
from snnc.inspect.palette import LAYERS

Row = Mapping[str, Any]


def draw(rows: Sequence[Row]) -> str:
    """Draw milliseconds of a step and peak memory, both axes logarithmic; a mark for each row."""
    columns = list(dict.fromkeys((r["workload"], r["density"]) for r in rows))
    kinds = list(dict.fromkeys([(e.engine, e.mode) for e in ENTRIES] + [(r["engine"], r["mode"]) for r in rows]))
    colours = {kind: LAYERS[n % len(LAYERS)] for n, kind in enumerate(kinds)}
    panels = [
        _panel(0, "ms a training step, median", rows, columns, colours, "ms_median"),
        _panel(1, "peak memory over the import, MB", rows, columns, colours, "peak_mb"),
    ]
    there = {(r["engine"], r["mode"]) for r in rows}
    legend = [(" ".join(kind), colour) for kind, colour in colours.items() if kind in there]
    return render("training steps on a CPU", "", panels, legend, "measured")


def _panel(
    index: int,
    title: str,
    rows: Sequence[Row],
    columns: Sequence[tuple[str, float]],
    colours: Mapping[tuple[str, str], str],
    key: str,
) -> Panel:
    left = LEFT + index * (WIDTH + GAP)
    values = [math.log10(max(float(r[key]), 1e-3)) for r in rows]
    low, high = math.floor(min(values, default=0)), math.ceil(max(values, default=1))
    high = max(high, low + 1)
    places = [round(left + WIDTH * (n + 0.5) / max(1, len(columns)), 1) for n in range(len(columns))]

    def height(at: float) -> float:
        return round(TOP + HEIGHT * (1 - (at - low) / (high - low)), 1)

    marks = tuple(
        Mark(places[columns.index((r["workload"], r["density"]))], height(value), colours[r["engine"], r["mode"]], _title(r), True)
        for r, value in zip(rows, values, strict=True)
    )
    ticks = tuple((height(k), short(10.0**k)) for k in range(low, high + 1))
    names = tuple((x, f"{name} {100 * density:g}%") for x, (name, density) in zip(places, columns, strict=True))
    return Panel(title, left, ticks, names, left + WIDTH, left + WIDTH / 2, (), marks, "workload, input density")


def _title(row: Row) -> str:
    where = f"{row['workload']} {100 * row['density']:g} %, {row['engine']} {row['mode']} ({row['variant']})"
    return f"{where}: {row['ms_median']:.4g} ms, {row['samples_per_s']:,.0f} samples/s, {row['peak_mb']:,.0f} MB"
