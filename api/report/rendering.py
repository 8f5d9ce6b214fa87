"""Jinja environment of report templates, and its number formats."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jinja2

from snnc.report.limits import amount
from snnc.report.pictures.graphs import printable


def json_text(data: Any) -> str:
    """Format data as JSON."""
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


@cache
def environment(*, escape: bool, folder: str = "report") -> jinja2.Environment:
    """Return the Jinja environment of a template folder; with `escape`, all values are escaped for HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("snnc.templates", folder),
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
    # Lengths in CSS: `css` takes a share (0 to 1), `place` a percentage (0 to 100).
    environment.filters["css"] = lambda share: f"{100 * share:.3f}%"
    environment.filters["place"] = lambda percent: f"{percent:.3f}%"
    environment.filters["amount"] = amount
    environment.filters["plain"] = printable
    environment.filters["ranges"] = _ranges
    environment.filters["change"] = lambda value: "" if value is None else "=" if value == 0 else f"{100 * value:+.1f} %"
    return environment


def _ranges(runs: list[list[int]]) -> str:
    """Format runs of numbers as ``0 – 12, 20``, at most two of them."""
    parts = [f"{first:,}" if count == 1 else f"{first:,} – {first + count - 1:,}" for first, count in runs[:2]]
    return ", ".join(parts) + (" …" if len(runs) > 2 else "")
