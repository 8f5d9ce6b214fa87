"""Predict the memory of a training step or forward pass on a CPU or GPU, and on a GPU its time, without building the project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Graph
from snnc.driver.compiling import compile_to_folder
from snnc.options.compile_options import CompileOptions
from snnc.report.program import predicted_memory


@dataclass(frozen=True)
class MemoryEstimate:
    """Predicted memory of a training step (if `training`) or forward pass and, on a GPU, its predicted time.

    `segment` is the number of steps between two checkpoints, None without checkpoints. `bytes` includes parameters and optimiser
    moments. On a GPU, `card` is its name, `seconds` the time, and `kernels` the time and bottleneck of each kernel launch.
    """

    target: str
    precision: str
    steps: int
    batch: int
    training: bool
    segment: int | None
    bytes: int
    card: str | None = None
    seconds: float | None = None
    kernels: tuple[Mapping[str, Any], ...] = ()

    def lines(self) -> list[str]:
        """Return the estimate as lines of text: memory, time, and the time of each kernel."""
        what = "a training step" if self.training else "a forward pass"
        checkpoints = "" if self.segment is None else f", checkpoints every {self.segment} steps"
        size = f"{self.bytes / 2**20:.1f} MiB for {what}, predicted"
        lines = [f"memory    {size} ({self.target}, {self.precision}; {self.steps} steps of {self.batch} samples{checkpoints})"]
        if self.seconds is not None:
            time = f"{1e3 * self.seconds:.3g} ms for {what}, predicted for {self.card}, including waits for the host"
            lines.append(f"time      {time}; kernels, in us:")
        for kernel in self.kernels:
            moved = f"{kernel['bytes'] / 2**20:,.1f} MiB"
            name = f"{kernel['kind']:<11} {kernel['way']:<8}"
            lines.append(f"  {kernel['us']:8.1f}  {name}  {moved:>12}  bound by {kernel['by']:<12}  {kernel['of']}")
        return lines


def estimate_memory(graph: Graph, chosen: CompileOptions) -> MemoryEstimate:
    """Return the estimate for a CPU or GPU target, with the checkpoints that the memory limit of `chosen` requires."""
    with temporary_folder("snnc-estimate-") as folder:
        project = Path(folder) / "project"
        compile_to_folder(graph, chosen, project)
        description = json.loads((project / "project.json").read_text(encoding="utf-8"))
    steps, batch = description["steps"], description["batch"]
    segment, size = predicted_memory(description, chosen)
    gpu = chosen.backend.launches(description, steps, batch) or {}
    predicted = gpu.get("card"), gpu.get("seconds"), tuple(gpu.get("kernels", ()))
    return MemoryEstimate(chosen.target, chosen.precision, steps, batch, description["training"], segment, size, *predicted)
