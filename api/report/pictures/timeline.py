"""Supersteps on a time axis: those of a whole training step or forward pass, and one run of each of its parts, such as "backward"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from snnc.compiler.ir.plan import Phase, Plan

KINDS: Final = ("sync", "exchange", "compute")
"""Kinds of cycles of a superstep, in the order in which they occur."""
Emulated = Mapping[str, Mapping[str, float]]
"""Cycles of all runs in one training step or forward pass, by phase name and kind."""


@dataclass(frozen=True)
class Span:
    """An interval of a row.

    `phase` is the name of a phase or part, `kind` one of :data:`KINDS`, or empty for a whole phase or part. `start` is in cycles from the
    start of the row. `runs` is how often a phase runs in the step (of a part: its most frequent phase); 1 for `spans` in :func:`part_rows`.
    """

    phase: str
    kind: str
    start: float
    cycles: float
    runs: int


@dataclass(frozen=True)
class TimelineRow:
    """One time axis, `cycles` long.

    `heads` are parts of the step, or phases of an iteration; `spans`, the sync, exchange and compute of the phases.
    """

    title: str
    heads: tuple[Span, ...]
    spans: tuple[Span, ...]
    cycles: float


def whole_step(plan: Plan, emulated: Emulated | None = None) -> TimelineRow:
    """Return all phases of a training step or forward pass one after another, each with all its runs; the heads are the parts."""
    cursor, heads, spans = 0.0, list[Span](), list[Span]()
    for part, phases in groupby(plan.phases, key=lambda p: p.part):
        start, members = cursor, list(phases)
        for phase in members:
            phase_spans, cursor = _phase(phase, cursor, phase.runs, emulated)
            spans += phase_spans
        heads.append(Span(part, "", start, cursor - start, max(p.runs for p in members)))
    return TimelineRow("training step" if plan.training else "forward pass", tuple(heads), tuple(spans), cursor)


def part_rows(plan: Plan, emulated: Emulated | None = None) -> tuple[TimelineRow, ...]:
    """Return a row per part with one run of each of its phases; the heads are the phases."""
    rows = []
    for part, phases in groupby(plan.phases, key=lambda p: p.part):
        cursor, heads, spans, members = 0.0, list[Span](), list[Span](), list(phases)
        for phase in members:
            phase_spans, stop = _phase(phase, cursor, 1, emulated)
            heads.append(Span(phase.name, "", cursor, stop - cursor, phase.runs))
            spans += phase_spans
            cursor = stop
        # Neurons compute once per iteration; further windows and decisions may run more often.
        runs = next((phase.runs for phase in members if phase.name == f"{part}: neurons"), max(phase.runs for phase in members))
        rows.append(TimelineRow(f"{part}: one iteration of {runs:,}" if runs > 1 else part, tuple(heads), tuple(spans), cursor))
    return tuple(rows)


def _phase(phase: Phase, start: float, runs: int, emulated: Emulated | None) -> tuple[list[Span], float]:
    spans = []
    for kind in KINDS:
        if emulated is None:
            cycles = runs * getattr(phase, kind)
        else:
            cycles = emulated.get(phase.name, {}).get(kind, 0.0) * runs / phase.runs
        spans.append(Span(phase.name, kind, start, cycles, runs))
        start += cycles
    return spans, start
