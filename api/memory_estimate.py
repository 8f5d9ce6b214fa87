"""What a sequence would take of the memory of the processor or of a GPU: predicted, nothing is built."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from snnc.backends.cpu.engine import threads_of
from snnc.backends.cpu.memory import predicted_bytes, segment_for
from snnc.compiler.graph import Graph
from snnc.compiler.temporary import temporary_folder
from snnc.compiling import compile_to_folder
from snnc.options import Options
from snnc.target_kinds import CPU


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
    """

    target: str
    precision: str
    steps: int
    batch: int
    training: bool
    segment: int | None
    bytes: int

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return asdict(self)

    def text(self) -> str:
        """Return it as a line."""
        what = "a training step" if self.training else "a forward pass"
        checkpoints = "" if self.segment is None else f", checkpoints every {self.segment} steps"
        size = f"{self.bytes / 2**20:.1f} MiB for {what}, predicted"
        return f"memory    {size} ({self.target}, {self.precision}; {self.steps} steps of {self.batch} samples{checkpoints})"


def estimate_memory(graph: Graph, chosen: Options) -> MemoryEstimate:
    """Predict what a sequence takes on the target ``cpu`` or ``cuda``, within the bound of `chosen` where it has one.

    Raises
    ------
    MemoryNeededError
        No distance of checkpoints stays within the bound.
    """
    with temporary_folder("snnc-estimate-") as above:
        compile_to_folder(graph, chosen, Path(above) / "project")
        description = json.loads((Path(above) / "project" / "project.json").read_text(encoding="utf-8"))
    steps, batch, training = description["steps"], description["batch"], description["training"]
    segment, threads = steps, threads_of(chosen.threads) if chosen.target == CPU else 1
    if training and chosen.memory is not None:
        segment = segment_for(description, steps, batch, chosen.memory, threads)
    size = predicted_bytes(description, steps, batch, segment, threads)
    return MemoryEstimate(chosen.target, chosen.precision, steps, batch, training, None if segment == steps else segment, size)
