"""Predicted milliseconds of training steps on a GPU: ``python -m snnc.benchmarks.cuda.predicted`` prints the documentation's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from snnc.backends.cuda.network import launches_of
from snnc.backends.cuda.schedule.prediction import H100, predict, seconds_of
from snnc.benchmarks.cpu.oracle import program_of
from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS
from snnc.compiler.ir.step_program import StepProgram


@dataclass(frozen=True)
class OtherFramework:
    """The fastest other framework on a workload, measured on one H100 on 2026-11-23, and the target for snnc's speed-up over it."""

    workload: str
    milliseconds: float
    speedup: float


FASTEST_OTHERS: Final = (
    OtherFramework("w1-5", 3.64, 12),
    OtherFramework("w1-b1024-5", 6.94, 6),
    OtherFramework("w2-5", 26.0, 6),
    OtherFramework("w3-5", 2.42, 4),
    OtherFramework("w1-ff-5", 1.21, 4),
    OtherFramework("conv-3", 3.00, 2),
    OtherFramework("open-4096-5", 11.7, 2),
)


def predicted_step(program: StepProgram, steps: int, batch: int) -> dict[str, Any]:
    """Return the predicted milliseconds of a training step of `steps` time steps and `batch` samples, and the name of the device."""
    predicted = predict(launches_of(program), steps, batch, H100)
    return {"card": H100.name, "ms": 1e3 * seconds_of(predicted, H100)}


def lines() -> list[str]:
    """Return the table in Markdown."""
    table = [
        "| workload | predicted, ms | fastest other framework, measured, ms | measured / predicted | target |",
        "|---|---|---|---|---|",
    ]
    workloads = {w.label: w for w in CUDA_WORKLOADS}
    for other in FASTEST_OTHERS:
        workload = workloads[other.workload]
        ms = predicted_step(program_of(workload), workload.steps, workload.batch)["ms"]
        table.append(f"| {other.workload} | {ms:.3g} | {other.milliseconds:.3g} | {other.milliseconds / ms:.2g} | {other.speedup:g} |")
    return table


if __name__ == "__main__":
    print("\n".join(lines()))
