"""The templates of the reproduction's page and drawings."""

from __future__ import annotations

import jinja2


def environment() -> jinja2.Environment:
    """Return the templates; everything that they print is escaped."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("snnc.templates", "reproduction"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters["amount"] = lambda value: "" if value is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    return found
