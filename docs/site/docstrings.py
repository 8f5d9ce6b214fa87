"""Docstrings of snnc as Markdown: an extension of Griffe, which reads them for the pages of docs/reference/python."""

from __future__ import annotations

import re
from typing import Any

import griffe

# A role such as :func:`~snnc.compile`, the marker of a literal block, and inline code.
ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?([\w.]+)`")
LITERAL = re.compile(r"^[ ]*::\n\n?|(?<=:):$", re.M)
DOUBLE = re.compile(r"``(.+?)``")


def as_markdown(text: str) -> str:
    """Convert the reStructuredText roles, literal blocks and inline code of a docstring to Markdown."""
    return DOUBLE.sub(r"`\1`", ROLE.sub(r"`\1`", LITERAL.sub("", text)))


class Docstrings(griffe.Extension):
    """Rewrite every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and not getattr(obj.docstring, "in_markdown", False):
            obj.docstring.value = as_markdown(obj.docstring.value)
            obj.docstring.in_markdown = True  # type: ignore[attr-defined]
