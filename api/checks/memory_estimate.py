"""Predicted memory and time of a sequence on the processor or on a GPU, without building anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from snnc.backends.native.memory import predicted_bytes, segment_for
from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Graph
from snnc.driver.compiling import compile_to_folder
from snnc.options.compile_options import Options


@dataclass(frozen=True)
class MemoryEstimate:
    """Predicted bytes.

    Attributes
    ----------
    target, precision, steps, batch, training
        Of what; a training step where there is a loss, a forward pass otherwise.
    segment
        Steps between two checkpoints; None: there are none.
    bytes
        What it takes, parameters and moments among it.
    card, seconds, kernels
        On a GPU: its name, seconds of it all, and of each launch with what bounds it.
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

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self)

    def text(self) -> str:
        """Return it as a line."""
        what = "a training step" if self.training else "a forward pass"
        checkpoints = "" if self.segment is None else f", checkpoints every {self.segment} steps"
        size = f"{self.bytes / 2**20:.1f} MiB for {what}, predicted"
        return f"memory    {size} ({self.target}, {self.precision}; {self.steps} steps of {self.batch} samples{checkpoints})"

    def lines(self) -> list[str]:
        """Return all of it as lines: memory, time, and where the time goes."""
        if self.seconds is None:
            return [self.text()]
        what = "a training step" if self.training else "a forward pass"
        found = [
            self.text(),
            f"time      {1e3 * self.seconds:.3g} ms for {what}, predicted for {self.card}, its wait for the host included; kernels, in us:",
        ]
        for one in self.kernels:
            moved = f"{one['bytes'] / 2**20:,.1f} MiB"
            found.append(f"  {one['us']:8.1f}  {one['kind']:<11} {one['way']:<8}  {moved:>12}  bound by {one['by']:<12}  {one['of']}")
        return found


def estimate_memory(graph: Graph, chosen: Options) -> MemoryEstimate:
    """Predict what a sequence takes on a native target, within the bound of `chosen` where it has one.

    Raises
    ------
    MemoryNeededError
        No distance of checkpoints stays within the bound.
    """
    with temporary_folder("snnc-estimate-") as above:
        compile_to_folder(graph, chosen, Path(above) / "project")
        description = json.loads((Path(above) / "project" / "project.json").read_text(encoding="utf-8"))
    steps, batch, training = description["steps"], description["batch"], description["training"]
    segment, threads = steps, chosen.backend.threads(chosen.own())
    if training and chosen.memory is not None:
        segment = segment_for(description, steps, batch, chosen.memory, threads)
    size = predicted_bytes(description, steps, batch, segment, threads)
    found = MemoryEstimate(chosen.target, chosen.precision, steps, batch, training, None if segment == steps else segment, size)
    predicted = chosen.backend.launches(description, steps, batch)
    if predicted is None:
        return found
    return replace(found, card=predicted["card"], seconds=predicted["seconds"], kernels=tuple(predicted["kernels"]))
