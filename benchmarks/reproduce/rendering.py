"""The templates of the reproduction's page and drawings."""

from __future__ import annotations

import jinja2

from snnc.report.rendering import environment


def page_templates() -> jinja2.Environment:
    """Return the templates; they escape every value that they print."""
    templates = environment(escape=True, folder="reproduction")
    templates.filters["amount"] = lambda value: "" if value is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    return templates
