"""Predicted milliseconds of training steps on a GPU: ``python -m snnc.benchmarks.cuda.predicted`` prints the documentation's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from snnc.backends.cuda.network import launches_of
from snnc.backends.cuda.schedule.prediction import H100, predict, seconds_of
from snnc.benchmarks.cpu.oracle import program_of
from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS
from snnc.benchmarks.nets import benchmark

FASTEST_OTHERS: Final[Mapping[str, tuple[float, float]]] = {
    "w1-5": (3.64, 12),
    "w1-b1024-5": (6.94, 6),
    "w2-5": (26.0, 6),
    "w3-5": (2.42, 4),
    "w1-ff-5": (1.21, 4),
    "conv-3": (3.00, 2),
    "open-4096-5": (11.7, 2),
}
"""By workload: milliseconds of the fastest other framework, measured on one H100 on 2026-11-23, and the target for snnc's speed-up."""


def predict_gpu_step(name: str) -> dict[str, Any]:
    """Return the predicted step of a network of ``snnc bench --suite cuda`` or ``--suite paper`` on an H100; no GPU is needed.

    snnc's program multiplies all values on tensor cores and drops no spike, so the prediction depends on neither data nor activity.
    """
    workload = next((w for w in CUDA_WORKLOADS if w.label == name), None)
    if workload is None:
        case = benchmark(name)
        program, steps, batch = case.program(), case.steps, case.batch
    else:
        program, steps, batch = program_of(workload), workload.steps, workload.batch
    seconds = seconds_of(predict(launches_of(program), steps, batch, H100), H100)
    return {"net": name, "device": H100.name, "steps": steps, "batch": batch, "step_ms": 1e3 * seconds}


def lines() -> list[str]:
    """Return the table in Markdown."""
    table = [
        "| workload | predicted, ms | fastest other framework, measured, ms | measured / predicted | target |",
        "|---|---|---|---|---|",
    ]
    for workload, (other_ms, speedup) in FASTEST_OTHERS.items():
        ms = predict_gpu_step(workload)["step_ms"]
        table.append(f"| {workload} | {ms:.3g} | {other_ms:.3g} | {other_ms / ms:.2g} | {speedup:g} |")
    return table


if __name__ == "__main__":
    print("\n".join(lines()))
