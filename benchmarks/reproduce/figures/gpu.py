"""IPU and GPU beside each other, network by network: predicted and published steps of IPUs, measured steps of GPUs."""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.log import logged_runs
from snnc.benchmarks.reproduce.figure import Figure, Point, Results, Row, why_missing
from snnc.benchmarks.reproduce.figures.plans import SERIES, SNNC, plan_row
from snnc.benchmarks.reproduce.measured import measured_steps

NETS: Final = ("w1", "w1-ff", "w2", "logged-h2-a5")


def rows(quick: bool) -> tuple[Row, ...]:
    """Return the networks that a GPU was measured with, on an IPU."""
    del quick
    return tuple(plan_row(net) for net in NETS)


def points(results: Results) -> tuple[Point, ...]:
    """Return milliseconds of a step: a series for each program and device."""
    found = []
    for net in NETS:
        result = results.get(plan_row(net).key)
        if result is not None:
            ms = result["step_ms"] if result.get("fits") else None
            found.append(Point(SERIES[SNNC], "predicted", net, ms, why_missing(result), {"net": net}))
    found += [
        Point("IPU, the paper's program (published log)", "published", run.name, run.logged_ms) for run in logged_runs() if run.name in NETS
    ]
    for step in measured_steps():
        about = {"device": step.device, "date": step.date, "commit": step.commit}
        series = f"GPU, {step.program} (measured)"
        found.append(Point(series, "measured", step.net, step.ms, f"{step.device}, {step.date}, commit {step.commit}", about))
    return tuple(sorted(found, key=lambda point: NETS.index(str(point.x))))


FIGURE: Final = Figure(
    "gpu",
    "2311.04386",
    "A training step on an IPU and on a GPU",
    "Milliseconds, lower is better. W1: one recurrent layer of 512, batch 64, T = 250; W1-ff without recurrence; W2: 1,024 and "
    "1,024; the logged network of "
    "two hidden layers at 5 %. The prototype is a hand-written CUDA program for one network. GPU rows were measured on the date and "
    "device that their points name.",
    "network",
    "ms a training step",
    rows,
    points,
)
