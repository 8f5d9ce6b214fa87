"""What a row of the suite holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from snnc.benchmarks.cpu.workloads import Workload

if TYPE_CHECKING:
    from snnc.benchmarks.cpu.suite import Runner


def row(workload: Workload, runner: Runner, activity: float, cosine: float) -> dict[str, Any]:
    """Return the row of an engine.

    ``ms_*`` are of all timed steps, ``ms_spread`` is between the medians of the fastest and of the slowest turn, ``peak_mb`` is the peak over
    what was resident when the framework was imported, ``loss`` that of the first step, ``activity`` spikes a hidden neuron and step,
    ``gradient_cosine`` between the gradient that was taken and the exact one.
    """
    process, ms = runner.process, np.array(runner.ms)
    middle = float(np.median(ms))
    return {
        "workload": workload.name,
        "density": workload.density,
        "engine": process.entry.engine,
        "mode": process.entry.mode,
        "variant": process.variant,
        "ms_median": middle,
        "ms_p10": float(np.percentile(ms, 10)),
        "ms_p90": float(np.percentile(ms, 90)),
        "ms_spread": max(runner.medians) - min(runner.medians),
        "samples_per_s": 1e3 * workload.batch / middle,
        "peak_mb": runner.peak_mb,
        "loss": runner.loss,
        "activity": activity,
        "gradient_cosine": cosine,
        "steps_timed": len(ms),
        "turns": len(runner.medians),
        "versions": process.versions,
        "note": process.entry.note,
    }


def best_peer(rows: list[dict[str, Any]], key: str) -> dict[str, Any] | None:
    """Return the row of another framework with the smallest `key`; None where there is none."""
    return min((r for r in rows if r["engine"] != "snnc"), key=lambda r: float(r[key]), default=None)
