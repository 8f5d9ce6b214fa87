"""Figure: throughput against the activity of hidden layers on an IPU and on GPUs, with the same weights and data for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from snnc.benchmarks.conditions import Conditions, conditions_differ
from snnc.benchmarks.cuda.workloads import CURVE
from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row
from snnc.benchmarks.reproduce.figures.gpu import IPU, matched_row
from snnc.benchmarks.reproduce.figures.plans import gpu_points, gpu_row, step_point
from snnc.benchmarks.reproduce.measured import MeasuredStep, measured_steps

NETS: Final = {workload.label: float(workload.name.removeprefix("h3-a")) for workload in CURVE}
"""Activity of the hidden layers, in %, for which the weights of each network were scaled, by name of the network."""
QUICK: Final = (1, 5, 20)
BATCH: Final = CURVE[0].batch


def rows(quick: bool) -> tuple[Row, ...]:
    """Return two rows for each network: its predicted steps on an IPU and on a GPU."""
    chosen = [net for net, percent in NETS.items() if percent in QUICK or not quick]
    return tuple(row for net in chosen for row in (matched_row(net), gpu_row(net)))


def points(results: Results, measured: Sequence[MeasuredStep] | None = None) -> tuple[Point, ...]:
    """Return samples/s over the counted activity: a series for each program and device; `measured` replaces the stored measured steps.

    Training steps that were measured with other weights, data or activity than those of the prediction get points without samples/s.
    """
    points = []
    for net, percent in NETS.items():
        ipu = results.get(matched_row(net).key)
        if ipu is not None:
            activity = _counted(ipu, percent)
            points.append(step_point(IPU, activity, ipu, {"net": net} | ({"step_ms": ipu["step_ms"]} if ipu.get("fits") else {})))
            points += gpu_points(results, net, activity, rate=True)
        for step in measured_steps() if measured is None else measured:
            if step.net == net and step.processor == "GPU":
                points.append(_measured(step, ipu or {}))
    return tuple(points)


def _counted(result: Mapping[str, Any], percent: float) -> float:
    return _mean(Conditions(**result["conditions"])) if "conditions" in result else percent


def _mean(conditions: Conditions) -> float:
    """Return the mean activity of the hidden layers in %, rounded to three digits for the axis."""
    hidden = [rate for name, rate in conditions.activity.items() if name.startswith("hidden")]
    return float(f"{100 * sum(hidden) / len(hidden):.3g}")


def _measured(step: MeasuredStep, ipu: Mapping[str, Any]) -> Point:
    wrong = conditions_differ(step.conditions, Conditions(**ipu["conditions"])) if "conditions" in ipu else ""
    note = f"{step.origin}, {step.ms:.3g} ms per step" + (f"; not the problem of the prediction: {wrong}" if wrong else "")
    about = {"net": step.net, "step_ms": step.ms, "conditions": asdict(step.conditions)}
    rate = None if wrong else 1e3 * BATCH / step.ms
    return Point(f"GPU, {step.program} (measured)", "measured", _mean(step.conditions), rate, note, about)


FIGURE: Final = Figure(
    "gpu-activity",
    "Training throughput against activity, IPU and GPU",
    "2,312 inputs (2 % spike), three hidden layers of 978 neurons, T = 100, batch 48, Adam, as in the figure of the IPU's programs, but "
    "with exact gradients and no dropped spikes. Random weights are scaled for the activity, which is counted. All points of an activity "
    "have the same weights and data. snnc's program for GPUs multiplies all values, so its time does not depend on activity. "
    "Frameworks are added once they have been measured on a GPU.",
    "counted activity of the hidden layers, %",
    "samples/s",
    points,
    rows,
    log_x=True,
)
