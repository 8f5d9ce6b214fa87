"""Reports of a plan: placement, schedule and cost."""

from __future__ import annotations

from snnc.report.render import FORMATS, format_of, render, write
from snnc.report.subject import Subject, subject_of
from snnc.report.summary import summarise

__all__ = ["FORMATS", "Subject", "format_of", "render", "subject_of", "summarise", "write"]
