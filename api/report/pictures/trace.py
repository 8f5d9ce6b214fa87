"""The timeline in Chrome's trace event format, for chrome://tracing and Perfetto.

Format: "Trace Event Format" (Google, 2016), with complete events ("X") in microseconds and metadata ("M") for names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from snnc.compiler.ir.plan import Plan
from snnc.report.pictures.timeline import KINDS, Emulated, TimelineRow, part_rows, whole_step


def trace_events(plan: Plan, emulated: Emulated | None) -> dict[str, Any]:
    """Return a trace of the predicted cycles, and of the emulated ones if given.

    Each has two processes: the whole step, and one run of each superstep.
    """
    events: list[dict[str, Any]] = []
    step_title = f"whole {'training step' if plan.training else 'forward pass'}, all runs of a superstep together"
    for source, counts in (("predicted", None), *([("emulated", emulated)] if emulated else [])):
        for title, rows in (
            (f"{source}: {step_title}", (whole_step(plan, counts),)),
            (f"{source}: one run of each superstep", part_rows(plan, counts)),
        ):
            process = 1 + sum(event["name"] == "process_name" for event in events)
            events += _names(process, title)
            offset = 0.0
            for row in rows:
                events += _spans(plan, process, row, offset, source)
                offset += row.cycles
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"network": plan.name, "target": plan.target.name, "clock_hz": plan.target.clock_hz, "cycles": plan.cycles},
    }


def _names(process: int, title: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": title}}
    yield {"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0, "args": {"sort_index": process}}
    for thread, name in enumerate(("superstep", *KINDS), 1):
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread, "args": {"sort_index": thread}}


def _spans(plan: Plan, process: int, row: TimelineRow, offset: float, source: str) -> Iterator[dict[str, Any]]:
    phases = {p.name: p for p in plan.phases}
    scale = 1e6 / plan.target.clock_hz
    for span in (*row.heads, *row.spans):
        if span.cycles <= 0:
            continue
        arguments: dict[str, Any] = {"cycles": span.cycles, "runs": span.runs, "source": source}
        if span.phase in phases:
            arguments |= {"busiest_tile": phases[span.phase].busiest_tile, "bytes_in": phases[span.phase].bytes_in}
        yield {
            "ph": "X",
            "cat": span.kind or "superstep",
            "name": f"{span.phase} ({span.kind})" if span.kind else span.phase,
            "pid": process,
            "tid": 2 + KINDS.index(span.kind) if span.kind else 1,
            "ts": (offset + span.start) * scale,
            "dur": span.cycles * scale,
            "args": arguments,
        }
