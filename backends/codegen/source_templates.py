"""Print emitted sources from Jinja templates."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from typing import Any

import jinja2

from snnc.backends.codegen.names import c_string, comment_text


def source_templates() -> jinja2.Environment:
    """Return a Jinja environment in which undefined names are errors, and ``comment`` and ``c_string`` are filters for names.

    Callers keep their environment, because compiling a template, which happens at its first use, takes longer than printing it.
    """
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


def source_of(environment: jinja2.Environment, path: str, context: Mapping[str, Any]) -> str:
    """Return the text of an emitted file, whose `path` is ``<target>/<file>``.

    A plain file in ``<target>/runtime`` is copied; otherwise the template ``<file>.jinja`` is printed with the values in `context`.
    """
    folder, _, name = path.partition("/")
    assert environment.loader is not None
    try:
        return environment.loader.get_source(environment, f"{folder}/runtime/{name}")[0]
    except jinja2.TemplateNotFound:
        return environment.get_template(f"{path}.jinja").render(context)
