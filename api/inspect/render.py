"""A plan as HTML, text, JSON or SVG."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final

import jinja2

from snnc.compiler.mapping.errors import ReportOptionError
from snnc.compiler.plan import Plan
from snnc.inspect.palette import RELAY, layer_colour
from snnc.inspect.tiles import cells
from snnc.inspect.view import build_view

FORMATS: Final = ("html", "text", "json", "svg")


def render(plan: Plan, fmt: str = "html", *, program: Mapping[str, Any] | None = None, profile: Mapping[str, Any] | None = None) -> str:
    """Draw `plan`.

    Parameters
    ----------
    plan
        What to draw.
    fmt
        ``"html"``: a page that needs nothing else; ``"text"``: for terminals; ``"json"``: the numbers; ``"svg"``: the map of tiles.
    program
        What :func:`snnc.inspect.summarise` tells of the StepProgram: names of inputs, models and equations.
    profile
        What the emulator measured; its cycles stand beside the predicted ones.

    Raises
    ------
    ReportOptionError
        The format is unknown, or the profile is not the emulator's.
    """
    writers: dict[str, Callable[[], str]] = {
        "html": lambda: _html(plan, build_view(plan, program, profile)),
        "text": lambda: _environment(escape=False).get_template("report.txt.jinja").render(build_view(plan, program, profile)),
        "json": lambda: json.dumps(build_view(plan, program, profile), default=_plain, indent=1) + "\n",
        "svg": lambda: _svg(plan),
    }
    if fmt not in writers:
        raise ReportOptionError(f"a report cannot be written as {fmt!r}; it can be {', '.join(FORMATS)}.")
    return writers[fmt]()


def _html(plan: Plan, view: Mapping[str, Any]) -> str:
    names = [layer["label"] for layer in view["layers"]]
    data = {**view["tiles"], "layers": names, "colours": [layer["colour"] for layer in view["layers"]], "ramp": view["colours"]["ramp"]}
    return _environment(escape=True).get_template("report.html.jinja").render(**view, data=data | {"relay": RELAY})


def _svg(plan: Plan) -> str:
    drawn, grid = cells(plan)
    down = -(-plan.target.chips // grid.chips_across)
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
            height=(down * (grid.rows + 3) - 3) * size,
            legend=legend,
            name=plan.name,
            detail=f"{plan.target.name}, {sum(m > 0 for m in plan.tile_memory):,} of {plan.target.tiles:,} tiles; darker: more memory",
        )
    )


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")


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
    environment.filters["plain"] = lambda text: "".join(c if c.isprintable() else "?" for c in text)
    return environment
