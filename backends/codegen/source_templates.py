"""The templates of emitted sources, with the set-up that all targets share."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from typing import Any, Final

import jinja2

from snnc.backends.codegen.names import c_string, comment_text

MARKS: Final = ("{{", "{%", "{#")
"""Markers that distinguish a template from plain text."""


def source_templates() -> jinja2.Environment:
    """Return the templates of the package; an undefined name is an error, and names of a model become comments or strings."""
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


def text_of(environment: jinja2.Environment, path: str, context: Mapping[str, Any]) -> str:
    """Return a template's text for `context`; most sources are the same in every project and need no template compilation."""
    assert environment.loader is not None
    text, _, _ = environment.loader.get_source(environment, path)
    return environment.get_template(path).render(context) if any(mark in text for mark in MARKS) else text


def source_of(environment: jinja2.Environment, folder: str, name: str, context: Mapping[str, Any]) -> str:
    """Return the source file `name` of a target: plain text of ``<folder>/runtime``, or its template rendered with `context`."""
    assert environment.loader is not None
    try:
        return environment.loader.get_source(environment, f"{folder}/runtime/{name}")[0]
    except jinja2.TemplateNotFound:
        return text_of(environment, f"{folder}/{name}.jinja", context)
