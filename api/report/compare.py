"""Compare two plans: their differences, the faster one, and the main cause."""

from __future__ import annotations

from typing import Any

from snnc.report.pictures.palette import CYCLE_COLOURS
from snnc.report.subject import Subject
from snnc.report.view import facts


def compare(first: Subject, second: Subject) -> dict[str, Any]:
    """Return titles, a verdict, and rows of predicted numbers of both plans."""
    plans = (first.plan, second.plan)
    return {
        "titles": [f"{plan.name} on {plan.target.name}, T = {plan.steps}, batch {plan.batch}" for plan in plans],
        "verdict": verdict(first, second),
        "facts": _facts(first, second),
        "phases": _phases(first, second),
        "memory": _memory(first, second),
    }


def verdict(first: Subject, second: Subject) -> str:
    """Return sentences on the times per sample: which plan is faster, and the phase and kind of cycles with the largest difference.

    If the times differ by 0.1 % or less, they count as equal.
    """
    a, b = (s.plan.seconds / s.plan.batch for s in (first, second))
    times = f"{1e6 * a:.4g} µs a sample in A, {1e6 * b:.4g} µs in B (predicted)"
    kinds = ("training" if s.plan.training else "forward only" for s in (first, second))
    compared = (("the number of steps,", first.plan.steps, second.plan.steps), ("the kind of run:", *kinds))
    unlike = [f"{what} {x} and {y}" for what, x, y in compared if x != y]
    note = f" They differ in {' and in '.join(unlike)}, so their times say little about the mappings." if unlike else ""
    if abs(a - b) <= 0.001 * max(a, b):
        return f"Both take the same time: {times}.{note}"
    costs_a, costs_b = _costs(first), _costs(second)
    changes = {key: costs_b.get(key, 0.0) - costs_a.get(key, 0.0) for key in {**costs_a, **costs_b}}
    faster, ratio = ("B", a / b) if b < a else ("A", b / a)
    sign = -1 if b < a else 1
    phase, kind = max(changes, key=lambda key: sign * changes[key])
    share = changes[phase, kind] / (b - a)
    clock = second.plan.target.clock_hz / first.plan.target.clock_hz
    clocks = "" if clock == 1 else f" The clock of B alone would make it {clock:.3g} times as fast as A."
    cause = f"The largest part of the difference is the {kind} of “{phase}”, {100 * share:.0f} %."
    return f"{faster} is {ratio:.3g} times as fast: {times}. {cause}{clocks}{note}"


def _costs(subject: Subject) -> dict[tuple[str, str], float]:
    """Return seconds per sample by phase and kind (compute, sync, exchange)."""
    plan = subject.plan
    scale = 1 / (plan.target.clock_hz * plan.batch)
    return {(p.name, kind): p.runs * getattr(p, kind) * scale for p in plan.phases for kind in CYCLE_COLOURS}


def _facts(first: Subject, second: Subject) -> list[dict[str, Any]]:
    a, b = facts(first), facts(second)
    keys = {
        "milliseconds a step": "milliseconds",
        "samples/s": "samples_per_second",
        "milliseconds of host stream before it": "host_milliseconds",
        "cycles per step": "cycles",
        "batch": "batch",
        "cycles per step with all work spread evenly": "bound_cycles",
        "iterations": "iterations",
        "tiles used": "tiles_used",
        "chips used": "chips_used",
        "bytes on the fullest tile": "busiest_bytes",
    }
    return [_row(name, a[key], b[key]) for name, key in keys.items() if a[key] is not None and b[key] is not None]


def _phases(first: Subject, second: Subject) -> list[dict[str, Any]]:
    """Return the cycles of a training step or forward pass by phase, then the totals by kind."""
    a, b = ({p.name: p.runs * p.cycles for p in s.plan.phases} for s in (first, second))
    rows = [_row(name, a.get(name, 0.0), b.get(name, 0.0)) for name in {**a, **b}]
    for kind in CYCLE_COLOURS:
        one, two = (sum(p.runs * getattr(p, kind) for p in s.plan.phases) for s in (first, second))
        rows.append(_row(f"all {kind}", one, two))
    return rows


def _memory(first: Subject, second: Subject) -> list[dict[str, Any]]:
    a, b = ({name: max(tiles, default=0) for name, tiles in s.plan.memory.items()} for s in (first, second))
    return [_row(name, a.get(name, 0), b.get(name, 0)) for name in {**a, **b}]


def _row(name: str, a: float, b: float) -> dict[str, Any]:
    return {"name": name, "a": a, "b": b, "change": (b - a) / a if a else None}
