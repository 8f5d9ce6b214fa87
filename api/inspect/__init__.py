"""Reports of a plan: where everything lies, when it runs, what it costs."""

from __future__ import annotations

from snnc.inspect.render import FORMATS, render, write
from snnc.inspect.subject import Subject
from snnc.inspect.summary import summarise

__all__ = ["FORMATS", "Subject", "render", "summarise", "write"]
