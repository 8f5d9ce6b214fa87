"""Reports of a plan: where data is placed, when it is used, what it costs."""

from __future__ import annotations

from snnc.report.render import FORMATS, render, write
from snnc.report.subject import Subject
from snnc.report.summary import summarise

__all__ = ["FORMATS", "Subject", "render", "summarise", "write"]
