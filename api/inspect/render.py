"""A plan as a page, picture, text or data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import jinja2

from snnc.compiler.mapping.errors import ReportOptionError
from snnc.compiler.plan import Plan
from snnc.inspect.compare import compare
from snnc.inspect.graphs import dot, graphml, printable
from snnc.inspect.limits import amount
from snnc.inspect.page import build_page
from snnc.inspect.palette import RELAY, layer_colour
from snnc.inspect.png import draw_png
from snnc.inspect.subject import Subject
from snnc.inspect.tiles import cells
from snnc.inspect.trace import trace_events
from snnc.inspect.view import build_view
from snnc.recording import Recording

FORMATS: Final = ("html", "text", "json", "svg", "png", "graphml", "dot", "trace")
COMPARING: Final = ("html", "text", "json")
"""Formats that show two plans."""


def render(
    plan: Plan,
    fmt: str = "html",
    *,
    program: Mapping[str, Any] | None = None,
    profile: Mapping[str, Any] | None = None,
    recording: Recording | None = None,
) -> str:
    """Draw `plan` in a format that is text; :func:`write` knows PNG too.

    Parameters
    ----------
    plan
        What to draw.
    fmt
        ``"html"``: a page that needs nothing else; ``"text"``: for terminals; ``"json"``: the numbers; ``"svg"``: the map of tiles;
        ``"graphml"``, ``"dot"``: the dataflow graph; ``"trace"``: the timeline for chrome://tracing and Perfetto.
    program
        What :func:`snnc.inspect.summarise` tells of the StepProgram: names of inputs, models and equations.
    profile
        What the emulator counted; its cycles stand beside the predicted ones.
    recording
        Spikes of a run.

    Raises
    ------
    ReportOptionError
        The format is unknown, or the profile is not the emulator's.
    """
    return write(Subject(plan, program or {}, profile, recording), fmt).decode("utf-8")


def write(subject: Subject, fmt: str, other: Subject | None = None) -> bytes:
    """Draw `subject`, beside `other` where that is given, as the content of a file.

    Raises
    ------
    ReportOptionError
        The format is unknown or cannot show two plans, or the profile is not the emulator's.
    PictureToolError
        The format needs a library that is not installed.
    """
    writers: dict[str, Callable[[], str | bytes]] = {
        "html": lambda: _html(subject, other),
        "text": lambda: _text(subject, other),
        "json": lambda: _json(build_view(subject) | ({} if other is None else {"comparison": compare(subject, other)})),
        "svg": lambda: _svg(subject),
        "png": lambda: draw_png(subject),
        "graphml": lambda: graphml(subject),
        "dot": lambda: dot(subject),
        "trace": lambda: _json(trace_events(subject.plan, subject.emulation.phases if subject.emulation else None)),
    }
    if fmt not in writers:
        raise ReportOptionError(f"a report cannot be written as {fmt!r}; it can be {', '.join(FORMATS)}.")
    if other is not None and fmt not in COMPARING:
        raise ReportOptionError(f"{fmt!r} shows one plan; two plans are compared as {', '.join(COMPARING)}.")
    found = writers[fmt]()
    return found if isinstance(found, bytes) else found.encode("utf-8")


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _html(subject: Subject, other: Subject | None) -> str:
    page = build_page(subject, compare(subject, other) if other else None, other)
    return _environment(escape=True).get_template("report.html.jinja").render(page)


def _text(subject: Subject, other: Subject | None) -> str:
    comparison = compare(subject, other) if other else None
    return _environment(escape=False).get_template("report.txt.jinja").render(build_view(subject), comparison=comparison)


def _svg(subject: Subject) -> str:
    plan = subject.plan
    drawn, grid = cells(plan, subject.places)
    size = 11 if plan.target.chips == 1 else 6 if plan.target.chips <= 4 else 3
    legend = [(p.label, layer_colour(index)) for index, p in enumerate(plan.populations[:10])] + [("relays", RELAY)]
    width = (grid.chips_across * (grid.columns + 2) - 2) * size
    return (
        _environment(escape=True)
        .get_template("tiles.svg.jinja")
        .render(
            cells=drawn,
            size=size,
            width=max(width, 480),
            height=(grid.chips_down * (grid.rows + 3) - 3) * size,
            legend=legend,
            name=plan.name,
            detail=f"{plan.target.name}, {len(subject.places.used):,} of {plan.target.tiles:,} tiles; darker: more memory (predicted)",
        )
    )


def _environment(*, escape: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("snnc.templates", "report"),
        autoescape=escape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["n"] = lambda value: "" if value is None else f"{value:,.0f}"
    environment.filters["percent"] = lambda value: f"{100 * value:.1f} %"
    environment.filters["short"] = lambda value: (
        "" if value is None else f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
    )
    environment.filters["rate"] = lambda value: "" if value is None else f"{100 * value:.3g} %"
    environment.filters["css"] = lambda share: f"{100 * share:.3f}%"
    environment.filters["place"] = lambda percent: f"{percent:.3f}%"
    environment.filters["amount"] = amount
    environment.filters["plain"] = printable
    environment.filters["ranges"] = _ranges
    environment.filters["change"] = lambda value: "" if value is None else "=" if value == 0 else f"{100 * value:+.1f} %"
    return environment


def _ranges(runs: list[list[int]]) -> str:
    """Write runs of numbers: ``0 – 12, 20``, at most two of them."""
    parts = [f"{first:,}" if count == 1 else f"{first:,} – {first + count - 1:,}" for first, count in runs[:2]]
    return ", ".join(parts) + (" …" if len(runs) > 2 else "")
