"""Plot exploration points as self-contained SVG or HTML: throughput, memory, and the ratio of the bound to the predicted time.

The bound, or balance bound, is the time of a training step or forward pass if all work were spread evenly over all tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from snnc.errors import ExploreError
from snnc.exploring.points import ExplorationPoint
from snnc.report.pictures.palette import LAYERS, mixed
from snnc.report.rendering import environment

FORMATS: Final = ("html", "svg")
NOTE: Final = "all numbers are predicted; a cross above the axes: does not fit"
"""Text in the top right corner."""
WIDTH, HEIGHT, LEFT, TOP, GAP = 300.0, 230.0, 70.0, 70.0, 75.0
"""Size in pixels of a panel's axes, the margins, and the gap between panels."""


@dataclass(frozen=True)
class Mark:
    """A dot, or a cross for a point that does not fit."""

    x: float
    y: float
    colour: str
    title: str
    fits: bool


@dataclass(frozen=True)
class Panel:
    """A pair of axes with ticks (y, text), columns (x, text), lines (points, colour, dashed) and marks; `along` labels the x-axis."""

    title: str
    left: float
    ticks: tuple[tuple[float, str], ...]
    columns: tuple[tuple[float, str], ...]
    right: float
    middle: float
    lines: tuple[tuple[str, str, bool], ...]
    marks: tuple[Mark, ...]
    along: str = ""


@dataclass(frozen=True)
class Series:
    """The points of one line, from left to right."""

    label: str
    colour: str
    points: tuple[ExplorationPoint, ...]


_AXES: Final[Mapping[str, Callable[[ExplorationPoint], str]]] = {
    "batch": lambda p: str(p.batch),
    "activity": lambda p: "default" if p.activity is None else f"{100 * p.activity:g} %",
    "target": lambda p: p.target,
}
"""What may vary along the x-axis, with its text for a point."""


def draw(points: Sequence[ExplorationPoint], name: str, fmt: str) -> str:
    """Return a drawing of `points` for the network `name`: ``"svg"`` is the drawing alone, ``"html"`` a page with a table of the points."""
    if fmt not in FORMATS:
        raise ExploreError(f"a plot cannot be written as {fmt!r}; the formats are {', '.join(FORMATS)}.")
    along, series = _series(points)
    rows = [point.to_data() for point in points]
    return render(name, along, _panels(series), [(s.label, s.colour) for s in series], NOTE, fmt, rows)


def render(
    name: str,
    along: str,
    panels: Sequence[Panel],
    legend: Sequence[tuple[str, str]],
    note: str,
    fmt: str = "svg",
    rows: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Render panels side by side, with a legend of (text, colour); `along` is the default label of x-axes, `rows` fill the HTML table."""
    view: dict[str, Any] = {
        "name": name,
        "along": along,
        "note": note,
        "panels": panels,
        "legend": [(22 + 260 * (n % 4), TOP + HEIGHT + 58 + 18 * (n // 4), *item) for n, item in enumerate(legend)],
        "width": LEFT + len(panels) * (WIDTH + GAP),
        "height": TOP + HEIGHT + 70 + 18 * math.ceil(len(legend) / 4),
        "right": LEFT + len(panels) * (WIDTH + GAP) - 12,
        "heads": TOP - 22,
        "feet": (TOP + HEIGHT + 18, TOP + HEIGHT + 36),
        "rows": rows,
    }
    return environment(escape=True).get_template(f"explore.{fmt}.jinja").render(view)


def _series(points: Sequence[ExplorationPoint]) -> tuple[str, list[Series]]:
    """Return the name of the x-axis, the first of batch, activity and target that varies, and a line per combination of the others."""
    along = next((name for name, read in _AXES.items() if len({read(p) for p in points}) > 1), "batch")
    others = [read for name, read in _AXES.items() if name != along]
    groups: dict[tuple[Any, ...], list[ExplorationPoint]] = {}
    for point in points:
        groups.setdefault(tuple(read(point) for read in others), []).append(point)
    targets = list(dict.fromkeys(p.target for p in points))
    activities = list(dict.fromkeys(p.activity for p in points))
    all_series = []
    for members in groups.values():
        first = members[0]
        parts = [first.target] if along != "target" else []
        if along != "activity" and len(activities) > 1:
            parts.append(_AXES["activity"](first))
        if along != "batch":
            parts.append(f"batch {first.batch}")
        strength = 1 - 0.65 * activities.index(first.activity) / len(activities) if along != "activity" else 1.0
        colour = mixed(LAYERS[targets.index(first.target) % len(LAYERS)], strength)
        all_series.append(Series(", ".join(parts), colour, tuple(members)))
    return along, all_series


def _panels(series: Sequence[Series]) -> list[Panel]:
    rates = [v for s in series for p in s.points if p.estimate for v in (_rate(p), _bound_rate(p))]
    low, high = math.floor(math.log10(min(rates, default=1.0))), math.ceil(math.log10(max(rates, default=10.0)) + 1e-9)
    powers = [(k, short(10.0**k)) for k in range(low, max(high, low + 1) + 1)]
    percent = [(k, f"{k} %") for k in range(0, 101, 20)]
    title = "samples/s predicted; dashed: at the balance bound"
    return [
        _panel(0, title, series, powers, lambda p: math.log10(_rate(p)), lambda p: math.log10(_bound_rate(p))),
        _panel(1, "memory of the fullest tile", series, percent, lambda p: 100 * _number(p, "peak_tile_bytes") / _number(p, "tile_bytes")),
        _panel(2, "balance bound over prediction", series, percent, lambda p: 100 * _number(p, "balance")),
    ]


def short(value: float) -> str:
    """Format 10000 as 10 k."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _number(point: ExplorationPoint, name: str) -> float:
    assert point.estimate is not None
    return float(point.estimate.to_data()[name])


def _rate(point: ExplorationPoint) -> float:
    return _number(point, "samples_per_s")


def _bound_rate(point: ExplorationPoint) -> float:
    return _rate(point) / max(_number(point, "balance"), 1e-12)


def _panel(
    index: int,
    title: str,
    series: Sequence[Series],
    scale: Sequence[tuple[float, str]],
    value: Callable[[ExplorationPoint], float],
    bound: Callable[[ExplorationPoint], float] | None = None,
) -> Panel:
    left = LEFT + index * (WIDTH + GAP)
    number = max(len(s.points) for s in series)
    places = [left + WIDTH * (k + 0.5) / number for k in range(number)]
    low, high = scale[0][0], scale[-1][0]

    def height(at: float) -> float:
        return round(TOP + HEIGHT * (1 - (at - low) / (high - low)), 1)

    lines: list[tuple[str, str, bool]] = []
    marks = []
    for s in series:
        known = [(x, p) for x, p in zip(places, s.points, strict=False) if p.fits]
        for read, dashed in ((value, False), (bound, True)):
            if read is not None:
                lines.append((" ".join(f"{x:.1f},{height(read(p))}" for x, p in known), s.colour, dashed))
        for x, p in zip(places, s.points, strict=False):
            y = height(value(p)) if p.fits else TOP - 8
            marks.append(Mark(round(x, 1), y, s.colour, _title(p), p.fits))
    ticks = tuple((height(at), text) for at, text in scale)
    return Panel(title, left, ticks, _columns(series, places), left + WIDTH, left + WIDTH / 2, tuple(lines), tuple(marks))


def _columns(series: Sequence[Series], places: Sequence[float]) -> tuple[tuple[float, str], ...]:
    longest = max(series, key=lambda s: len(s.points)).points
    varying = [[read(p) for p in longest] for read in _AXES.values()]
    texts = next((v for v in varying if len(set(v)) > 1), varying[0])
    return tuple((round(x, 1), text) for x, text in zip(places, texts, strict=True))


def _title(point: ExplorationPoint) -> str:
    if point.estimate is None:
        return f"{point.target}, batch {point.batch}: does not fit. {point.reason}"
    data = point.estimate.to_data()
    return (
        f"{point.target}, batch {point.batch}, activity {data['activity']}: {data['samples_per_s']:,.0f} samples/s, "
        f"{data['step_ms']:.4g} ms per step, {100 * data['balance']:.0f} % of the bound, fullest tile {data['peak_tile_bytes']:,} bytes"
    )
