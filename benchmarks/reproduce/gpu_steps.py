"""Predicted training steps of snnc's CUDA program on an H100, from kernel rates measured on an H100."""

from __future__ import annotations

from typing import Any, Final

from snnc.benchmarks.cpu.oracle import program_of
from snnc.benchmarks.cuda.predicted import predicted_step
from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS
from snnc.benchmarks.nets import benchmark, same_network
from snnc.benchmarks.reproduce.figure import Point, Results, Row, why_missing

GPU: Final = "GPU, snnc's program (predicted for an H100)"
"""Label of the series."""


def predict_gpu_step(name: str) -> dict[str, Any]:
    """Return the row of a network of ``snnc bench --suite cuda`` or ``--suite paper``: its predicted step on an H100.

    The program multiplies all values on tensor cores and drops no spike, so the prediction depends on neither data nor activity.
    """
    workload = next((w for w in CUDA_WORKLOADS if w.label == name), None)
    if workload is None:
        case = benchmark(name)
        program, steps, batch = case.program(), case.steps, case.batch
    else:
        program, steps, batch = program_of(workload), workload.steps, workload.batch
    step = predicted_step(program, steps, batch)
    return {"net": name, "device": step["card"], "steps": steps, "batch": batch, "step_ms": step["ms"]}


def gpu_row(net: str) -> Row:
    """Return the row that predicts the step of a network on an H100."""
    return Row("gpu step", {"name": same_network(net)})


def gpu_points(results: Results, net: str, x: float | str, rate: bool) -> list[Point]:
    """Return the point of a network at `x`, in samples/s if `rate`, else in milliseconds per step; none if its row has no result."""
    result = results.get(gpu_row(net).key)
    if result is None:
        return []
    if "step_ms" not in result:
        return [Point(GPU, "predicted", x, None, why_missing(result))]
    ms = result["step_ms"]
    y = 1e3 * result["batch"] / ms if rate else ms
    return [Point(GPU, "predicted", x, y, f"{result['net']} on {result['device']}, {ms:.3g} ms per step", dict(result))]
