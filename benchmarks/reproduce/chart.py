"""Draw a figure as self-contained SVG: a line for each series; points without a number are crosses above the axes.

Each kind of number has its own dash pattern and mark, so kinds can be distinguished without colour. If the x-axis shows names instead of
numbers, the marks that several series have for one name are drawn next to each other. Colours repeat after eight series; marks of the next
eight are hollow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import jinja2

from snnc.benchmarks.reproduce.figure import Figure, Point
from snnc.exploring.plot import short
from snnc.report.pictures.palette import LAYERS, layer_colour, mixed
from snnc.report.rendering import environment

WIDTH, HEIGHT, LEFT, TOP, LEGEND_LINE = 620.0, 300.0, 70.0, 46.0, 20.0
"""Pixels: size of the plot, left and top margins, and height of a line of the legend."""
DASHES: Final = {"predicted": "", "emulated": "2 2", "measured": "8 3", "published": "1 5"}
"""Dash pattern of the line of each kind."""
MARKS: Final = {
    "predicted": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "emulated": "M0 -5l5 9h-10z",
    "measured": "M-3.7 -3.7h7.4v7.4h-7.4z",
    "published": "M0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
}
"""Mark of each kind, as an SVG path around its point: circle, triangle, square, rhombus."""
SQUARE: Final = MARKS["measured"]
"""Mark in the legend of stacked bars."""
CHARACTER: Final = 6.6
"""Estimated width of a character of a label, in pixels."""
APART: Final = 8.0
"""Maximum distance between the marks of two series for one name, in pixels."""


@dataclass(frozen=True)
class ChartLine:
    """One series, placed: `path` connects its points, and `shape` is the mark of its kind.

    `marks` has (x, y, title, whether it has a number) for each point.
    """

    label: str
    colour: str
    fill: str
    dashes: str
    path: str
    shape: str
    marks: tuple[tuple[float, float, str, bool], ...]


@dataclass(frozen=True)
class Axis:
    """A scale from numbers to pixels, with ticks (pixel, text)."""

    place: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]


def page_templates() -> jinja2.Environment:
    """Return the templates of the reproduction's page and drawings; they escape every value that they print."""
    templates = environment(escape=True, folder="reproduction")
    templates.filters["amount"] = lambda value: "" if value is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    return templates


def draw(figure: Figure, points: Sequence[Point]) -> str:
    """Return `points` as SVG; a figure without numbers has empty axes and a note. A 0 on a logarithmic axis counts as missing."""
    points = [replace(p, y=None, note=f"{p.note} (0)") if figure.log_y and p.y == 0 else p for p in points]
    known = [p.y for p in points if p.y is not None]
    if figure.stacked:
        known = [sum(p.y or 0.0 for p in points if p.x == name) for name in dict.fromkeys(p.x for p in points)]
    vertical = logarithmic(known, TOP + HEIGHT, -HEIGHT) if figure.log_y else _linear(known, TOP + HEIGHT, -HEIGHT, zero=figure.y_zero)
    names = list(dict.fromkeys(p.x for p in points if isinstance(p.x, str)))
    horizontal = _across(figure, points, names)
    series = list(dict.fromkeys(p.series for p in points))
    apart = min(APART, 0.8 * WIDTH / len(names) / len(series)) if names else 0.0
    lines = []
    for n, label in enumerate(series):
        of_series, aside = [p for p in points if p.series == label], apart * (n - (len(series) - 1) / 2)
        lines.append(_line(label, n, of_series, horizontal, vertical, names, aside, figure.stacked))
    longest = CHARACTER * max(map(len, names), default=0)
    slanted = bool(names) and longest > WIDTH / len(names)
    # Slanted labels reach down by sin 20° of their length.
    axis_title = TOP + HEIGHT + (34 + 0.35 * longest if slanted else 42)
    below = axis_title + 24
    return (
        page_templates()
        .get_template("figure.svg.jinja")
        .render(
            title=figure.title,
            x=figure.x,
            y=figure.y,
            lines=lines,
            bars=_bars(points, series, horizontal, vertical, names) if figure.stacked else (),
            axis_title=round(axis_title, 1),
            across=horizontal.ticks,
            up=vertical.ticks,
            left=LEFT,
            top=TOP,
            right=LEFT + WIDTH,
            bottom=TOP + HEIGHT,
            slanted=slanted,
            legend=[(below + LEGEND_LINE * n, line) for n, line in enumerate(lines)],
            width=LEFT + WIDTH + 30,
            height=below + LEGEND_LINE * len(lines),
            empty=not known,
        )
    )


def _bars(points: Sequence[Point], series: Sequence[str], across: Axis, up: Axis, names: Sequence[str]) -> list[dict[str, Any]]:
    """Stack the numbers of each name on the axis, with the first series at the bottom."""
    width, bars = min(90.0, 0.6 * WIDTH / len(names)) if names else 0.0, list[dict[str, Any]]()
    for name in names:
        below = 0.0
        for p in sorted((p for p in points if p.x == name and p.y), key=lambda p: series.index(p.series)):
            assert p.y is not None, "points without a number were left out"
            top, bottom = up.place(below + p.y), up.place(below)
            left = across.place(float(names.index(name))) - width / 2
            fill = bar_colour(series.index(p.series))
            place = {"x": round(left, 1), "y": round(top, 1), "width": round(width, 1), "height": round(bottom - top, 1)}
            bars.append(place | {"fill": fill, "title": f"{p.series}, {_text(p)}"})
            below += p.y
    return bars


def bar_colour(number: int) -> str:
    """Return the colour of series `number` (from 0) in stacked bars; series after the eighth are lighter."""
    return layer_colour(number) if number < len(LAYERS) else mixed(layer_colour(number), 0.4)


def _across(figure: Figure, points: Sequence[Point], names: Sequence[str]) -> Axis:
    if names:
        spots = [(LEFT + WIDTH * (n + 0.5) / len(names), name) for n, name in enumerate(names)]
        return Axis(lambda n: spots[int(n)][0], tuple((round(x, 1), name) for x, name in spots))
    numbers = sorted({float(p.x) for p in points})
    axis = logarithmic(numbers, LEFT, WIDTH, exact=True) if figure.log_x else _linear(numbers, LEFT, WIDTH)
    ticks = tuple((round(axis.place(x), 1), f"{x:g}") for x in numbers)
    return Axis(axis.place, ticks if len(ticks) <= 12 else axis.ticks)


def _line(
    label: str, number: int, points: Sequence[Point], across: Axis, up: Axis, names: Sequence[str], aside: float, stacked: bool
) -> ChartLine:
    """Place a series; if the x-axis shows names, its marks are `aside` pixels to the right of the name's position."""
    marks = []
    for p in points:
        x = aside + across.place(float(names.index(p.x)) if isinstance(p.x, str) else p.x)
        y = TOP - 6 if p.y is None else round(up.place(p.y), 1)
        marks.append((round(x, 1), y, f"{label}, {_text(p)}", p.y is not None))
    path = "" if names else " ".join(f"{x},{y}" for x, y, _, has_number in marks if has_number)
    colour, kind = layer_colour(number), points[0].kind
    fill = bar_colour(number) if stacked else colour if number < len(LAYERS) else "#ffffff"
    return ChartLine(label, colour, fill, DASHES[kind], path, SQUARE if stacked else MARKS[kind], tuple(marks))


def _text(point: Point) -> str:
    number = "no number" if point.y is None else f"{point.y:,.4g}"
    return f"{point.x}: {number}" + (f" ({point.note})" if point.note else "")


def logarithmic(numbers: Sequence[float], start: float, length: float, *, exact: bool = False) -> Axis:
    """Return an axis from pixel `start` over `length` pixels, with a tick at each power of ten.

    It begins and ends at powers of ten or, if `exact`, just outside of the smallest and the largest number.
    """
    low, high = math.log10(min(numbers, default=1.0)), math.log10(max(numbers, default=10.0))
    if exact:
        low, high = low - 0.03 * (high - low or 1), high + 0.03 * (high - low or 1)
    else:
        low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)

    def place(value: float) -> float:
        return start + length * (math.log10(value) - low) / (high - low)

    powers = range(math.ceil(low), math.floor(high) + 1)
    return Axis(place, tuple((round(place(10.0**k), 1), short(10.0**k)) for k in powers))


def _linear(numbers: Sequence[float], start: float, length: float, *, zero: bool = True) -> Axis:
    top, low = max(numbers, default=1.0), 0.0 if zero else min(numbers, default=0.0)
    width = top - low or abs(top) or 1.0
    step: float = 10.0 ** math.floor(math.log10(width))
    step = next(s for s in (step / 5, step / 2, step) if width / s <= 10)
    first, last = math.floor(low / step), max(math.ceil(top / step), math.floor(low / step) + 1)

    def place(value: float) -> float:
        return start + length * (value / step - first) / (last - first)

    return Axis(place, tuple((round(place(k * step), 1), f"{k * step:g}") for k in range(first, last + 1)))
