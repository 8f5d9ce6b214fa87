"""A figure of the reproduction: the rows (computations and measurements) that it needs, and the points that it shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["predicted", "emulated", "measured", "published"]
"""Origin of a number: snnc's model of a machine; the emulator, which runs the emitted program; a measurement on a device; or the
authors of a paper."""
Paper: TypeAlias = Literal["2311.04386", "2211.10725"]
"""The two papers, by arXiv number."""
Results: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Results of rows by :attr:`Row.key`."""


def why_missing(result: Mapping[str, Any]) -> str:
    """Return the reason why a row has no number: snnc's message (such as that the network does not fit), or how the process failed.

    The text is empty if the row has a number.
    """
    message = str(result.get("error", "")).split(" Try ")[0]
    return message or (f"no result: {result['failed']}" if "failed" in result else "")


def spread_note(accuracy: Sequence[float], seeds: int) -> str:
    """Return the smallest and the largest `accuracy` (0 to 1) in %, and the number of seeds, as text."""
    return f"{100 * min(accuracy):.1f} to {100 * max(accuracy):.1f} %, {seeds} seed{'s' * (seeds > 1)}"


@dataclass(frozen=True)
class Row:
    """One computation or measurement, which runs in a separate process."""

    work: str
    """The kind of work, a key of :data:`snnc.benchmarks.reproduce.work.WORK`."""
    arguments: Mapping[str, Any]
    """Arguments of the work, JSON types."""

    @property
    def key(self) -> str:
        """Identifier of the row in files: the same text for the same work."""
        return f"{self.work} {json.dumps(dict(self.arguments), sort_keys=True)}"


def first_result(results: Results, row_of: Callable[[int], Row], sizes: Sequence[int]) -> tuple[int, Mapping[str, Any]] | None:
    """Return the first of `sizes` whose row has a result, and that result; None if none has one."""
    return next(((size, results[key]) for size in sizes if (key := row_of(size).key) in results), None)


@dataclass(frozen=True)
class Point:
    """One number of a figure."""

    series: str
    """Label of the point's line; all points of a line have one kind."""
    kind: Kind
    """Origin of the number."""
    x: float | str
    """Position on the axis: a number, or a name if the axis shows names."""
    y: float | None
    """The number in the figure's unit; None if it is missing, with the reason in `note`."""
    note: str = ""
    """Information about the number, such as its device and date, or the reason why it is missing."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Other data of the row, for the JSON file."""


@dataclass(frozen=True)
class Figure:
    """A figure of one paper."""

    name: str
    """Name of the figure, for ``--only`` and for its files."""
    title: str
    caption: str
    x: str
    y: str
    points: Callable[[Results], tuple[Point, ...]]
    """Returns the points of the figure from the results; rows without a result have no points."""
    rows: Callable[[bool], tuple[Row, ...]] = lambda quick: ()
    """Returns the rows that the figure needs; those of a quick run if the argument is true. Figures of stored results need none."""
    paper: Paper = "2311.04386"
    log_x: bool = False
    log_y: bool = True
    y_zero: bool = True
    """Whether a linear y axis begins at 0; otherwise it begins at or just below the smallest number."""
    stacked: bool = False
    """Whether the series of each name on the x axis are drawn as one stacked bar; the y axis is then linear."""
    picture: Callable[[Results], str] | None = None
    """Returns the figure as SVG, or "" to draw the points; None if the figure is a plot of its points."""
