"""Jinja environment and printing of emitted sources, for all targets."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from typing import Any

import jinja2

from snnc.backends.codegen.names import c_string, comment_text


def source_templates() -> jinja2.Environment:
    """Return the Jinja environment of emitted sources: an undefined name is an error.

    The filters ``comment`` and ``c_string`` print names of a model as safe comments and strings.

    An environment compiles a template when it first prints it, which takes longer than printing. Callers therefore keep their environment.
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
    """Return the text of an emitted file.

    Parameters
    ----------
    environment
        The result of :func:`source_templates`.
    path
        ``<target>/<file>``: a plain file in ``<target>/runtime`` is copied unchanged; otherwise the template ``<file>.jinja`` is printed.
    context
        Values that the template prints.
    """
    folder, _, name = path.partition("/")
    assert environment.loader is not None
    try:
        return environment.loader.get_source(environment, f"{folder}/runtime/{name}")[0]
    except jinja2.TemplateNotFound:
        return environment.get_template(f"{path}.jinja").render(context)
