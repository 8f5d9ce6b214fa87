"""The templates of emitted sources, with what all targets set up alike."""

from __future__ import annotations

import importlib.resources

import jinja2

from snnc.backends.names import c_string, comment_text


def source_templates() -> jinja2.Environment:
    """Return the templates of the package; a name that is not given is an error, and names of a model become comments or strings."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(importlib.resources.files("snnc.templates"))),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        keep_trailing_newline=True,
    )
    environment.filters |= {"comment": comment_text, "c_string": c_string}
    return environment
