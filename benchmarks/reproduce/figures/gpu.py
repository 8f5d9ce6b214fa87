"""Figure: time of a training step on IPUs (predicted, published), GPUs (predicted, measured) and a CPU (measured), for several networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from snnc.benchmarks.conditions import Conditions, conditions_differ
from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.figures.plans import gpu_points, gpu_row
from snnc.benchmarks.reproduce.measured import MeasuredStep, measured_steps

NETS: Final = ("w1-5", "w1-ff-5", "w3-5", "w2-5", "conv-3", "logged-h2-a5")
QUICK: Final = ("w1-5", "w1-ff-5", "logged-h2-a5")
OTHER: Final = ", other weights"
"""Suffix of the name of a column whose numbers were measured with other weights, data or activity than those of the prediction."""
IPU: Final = "IPU, snnc's exact program (predicted)"


def matched_row(net: str) -> Row:
    """Return the row of a network with the weights, data and activity of GPU measurements."""
    return Row("matched", {"name": net})


def rows(quick: bool) -> tuple[Row, ...]:
    """Return two rows for each network: its predicted steps on an IPU and on a GPU."""
    return tuple(row for net in (QUICK if quick else NETS) for row in (matched_row(net), gpu_row(net)))


def points(results: Results, measured: Sequence[MeasuredStep] | None = None) -> tuple[Point, ...]:
    """Return milliseconds per step: a series for each program and device; `measured` replaces the stored measured steps.

    A measured step is in the column of the prediction only if both have the same weights and data, and similar activity.
    """
    points = []
    for net in NETS:
        result = results.get(matched_row(net).key)
        if result is not None:
            ms = result["step_ms"] if result.get("fits") else None
            about = {"conditions": result["conditions"]} if result.get("conditions") else {}
            points.append(Point(IPU, "predicted", net, ms, why_missing(result), {"net": net} | about))
        points += gpu_points(results, net, net, rate=False)
    points += [
        Point("IPU, the paper's program (published log)", "published", run.name, run.logged_ms, "its activity was not recorded")
        for run in logged_runs()
        if run.name in NETS
    ]
    for step in (step for step in (measured_steps() if measured is None else measured) if step.net in NETS):
        about = {"device": step.device, "date": step.date, "commit": step.commit, "conditions": asdict(step.conditions)}
        wrong = problem_differs(step, results)
        note = step.origin + (f"; not the problem of the IPU's column: {wrong}" if wrong else "")
        x = step.net + (OTHER if wrong else "")
        points.append(Point(f"{step.processor}, {step.program} (measured)", "measured", x, step.ms, note, about))
    return tuple(sorted(points, key=lambda point: (NETS.index(str(point.x).removesuffix(OTHER)), str(point.x).endswith(OTHER))))


def problem_differs(step: MeasuredStep, results: Results) -> str:
    """Return the first difference between the conditions of a measured step (weights, data, activity) and of the prediction; "" if none.

    Without a prediction, the conditions are compared with those of the network's first measurement.
    """
    result = results.get(matched_row(step.net).key, {})
    if "conditions" in result:
        return conditions_differ(step.conditions, Conditions(**result["conditions"]))
    usual = next(other.conditions for other in measured_steps() if other.net == step.net)
    return conditions_differ(step.conditions, usual)


FIGURE: Final = Figure(
    "gpu",
    "A training step on an IPU and on a GPU",
    "Milliseconds, lower is better. W1: one recurrent layer of 256 neurons, T = 100, batch 64; W1-ff without recurrence; W3 with batch "
    "1; W2: two recurrent layers of 1,024, T = 250, batch 64; conv: two convolutions; the number is the percentage of inputs that spike. "
    "The last is the logged network with two hidden layers at 5 %. All predicted and measured numbers of a column have the same weights "
    "and data, and so the same activity (hashes and activities are in the JSON file; the CPU has two cores). Only the published program "
    "drops spikes. snnc's measured GPU program is its first design, of the commit that the point names; the predicted one is that of this "
    "version. Columns with other weights are separate: the prototype is a hand-written CUDA program for one network, which multiplies all "
    "values, so its time does not depend on activity.",
    "network",
    "ms per training step",
    points,
    rows,
)
