"""Render a plan as an HTML page, a picture, text or data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from snnc.compiler.ir.plan import Plan
from snnc.compiler.tiles.errors import ReportOptionError
from snnc.report.compare import compare
from snnc.report.page import build_page
from snnc.report.pictures.graphs import dot, graphml
from snnc.report.pictures.palette import RELAY, layer_colour
from snnc.report.pictures.png import draw_png
from snnc.report.pictures.tiles import cells
from snnc.report.pictures.trace import trace_events
from snnc.report.recording import Recording
from snnc.report.rendering import environment, json_text
from snnc.report.subject import Subject
from snnc.report.view import build_view

FORMATS: Final = ("html", "text", "json", "svg", "png", "graphml", "dot", "trace")
_OF_SUFFIX: Final = {".txt": "text", "": "html"}
"""Formats of extensions that are not names of formats."""
COMPARING: Final = ("html", "text", "json")
"""Formats that can show two plans."""


def format_of(file: Path) -> str:
    """Return the format for a file name's extension."""
    return _OF_SUFFIX.get(file.suffix, file.suffix.removeprefix("."))


def render(
    plan: Plan,
    fmt: str = "html",
    *,
    program: Mapping[str, Any] | None = None,
    profile: Mapping[str, Any] | None = None,
    recording: Recording | None = None,
) -> str:
    """Render `plan` in a text format; :func:`write` also supports PNG.

    Raise ReportOptionError if the format is unknown, or the profile is not from the emulator.

    Parameters
    ----------
    plan
        The plan to draw.
    fmt
        ``"html"``: a self-contained page; ``"text"``: for terminals; ``"json"``: the data; ``"svg"``: the tile map;
        ``"graphml"``, ``"dot"``: the dataflow graph; ``"trace"``: the timeline for chrome://tracing and Perfetto.
    program
        Summary of the StepProgram by :func:`snnc.report.summarise`: names of inputs, models and equations.
    profile
        The emulator's profile; its cycles are shown next to the predictions.
    recording
        Spikes of a run.
    """
    return write(Subject(plan, program or {}, profile, recording), fmt).decode("utf-8")


def write(subject: Subject, fmt: str, other: Subject | None = None) -> bytes:
    """Render `subject`, compared with `other` if given, as file contents; errors as for :func:`render`."""
    if fmt not in FORMATS:
        raise ReportOptionError(f"a report cannot be written as {fmt!r}; the formats are {', '.join(FORMATS)}.")
    if other is not None and fmt not in COMPARING:
        raise ReportOptionError(f"{fmt!r} shows a single plan; compare two plans as {', '.join(COMPARING)}.")
    comparison = None if other is None else compare(subject, other)
    match fmt:
        case "html":
            text = environment(escape=True).get_template("report.html.jinja").render(build_page(subject, comparison, other))
        case "text":
            text = environment(escape=False).get_template("report.txt.jinja").render(build_view(subject), comparison=comparison)
        case "json":
            text = json_text(build_view(subject) | ({} if comparison is None else {"comparison": comparison}))
        case "svg":
            text = _svg(subject)
        case "png":
            return draw_png(subject)
        case "graphml":
            text = graphml(subject)
        case "dot":
            text = dot(subject)
        case _:
            text = json_text(trace_events(subject.plan, subject.emulation.phases if subject.emulation else None))
    return text.encode("utf-8")


def _svg(subject: Subject) -> str:
    plan = subject.plan
    drawn, grid = cells(plan, subject.places)
    size = 11 if plan.target.chips == 1 else 6 if plan.target.chips <= 4 else 3
    legend = [(p.label, layer_colour(index)) for index, p in enumerate(plan.populations[:10])] + [("relays", RELAY)]
    width = (grid.chips_across * (grid.columns + 2) - 2) * size
    template = environment(escape=True).get_template("tiles.svg.jinja")
    return template.render(
        cells=drawn,
        size=size,
        width=max(width, 480),
        height=(grid.chips_down * (grid.rows + 3) - 3) * size,
        legend=legend,
        name=plan.name,
        detail=f"{plan.target.name}, {len(subject.places.used):,} of {plan.target.tiles:,} tiles; darker: more memory (predicted)",
    )
