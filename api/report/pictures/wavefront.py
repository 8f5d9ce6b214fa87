"""Draw the schedule: the time step that each population computes in the first iterations."""

from __future__ import annotations

from typing import Any, Final

from snnc.compiler.ir.plan import Plan
from snnc.report.pictures.palette import ink_on, layer_colour

SHOWN: Final = 12
"""Maximum number of iterations drawn."""
MAX_LAYERS: Final = 16
"""Maximum number of populations drawn."""


def draw_wavefront(plan: Plan) -> dict[str, Any]:
    """Return a row per population with a cell per iteration: the time step computed in it, or None."""
    columns = min(SHOWN, plan.iterations)
    rows = []
    for index, p in enumerate(plan.populations[:MAX_LAYERS]):
        steps: list[int | None] = []
        for k in range(columns):
            t, rest = divmod(k - p.stage, plan.interval)
            steps.append(t if rest == 0 and 0 <= t < plan.steps else None)
        rows.append({"label": p.label, "colour": layer_colour(index), "ink": ink_on(layer_colour(index)), "steps": steps})
    return {
        "iterations": list(range(columns)),
        "rows": rows,
        "more": plan.iterations > columns,
        "rest": max(0, len(plan.populations) - MAX_LAYERS),
    }
