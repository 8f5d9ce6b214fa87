"""One engine during the measurement: its turns and their times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from snnc.benchmarks.cpu.process import SECONDS, Process

TURN_MS: Final = 100.0
"""A turn takes about so long, so that short steps are timed as a training loop runs them."""
MOST_STEPS: Final = 50
WARM_MS: Final = 50.0
"""Shorter steps are preceded by an untimed one: threads and caches have slept while others had their turn."""


@dataclass
class EngineProcess:
    """An engine that passed the check: its process, and what was measured."""

    process: Process
    loss: float
    first_step_s: float
    ms: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    step_ms: float = 0.0
    peak_mb: float = 0.0
    device_mb: float | None = None

    def turn(self, seconds: float = SECONDS) -> None:
        """Take one turn, which may last so long.

        Raises
        ------
        EngineError
            The engine failed, or took longer.
        """
        steps = min(MOST_STEPS, max(1, math.ceil(TURN_MS / max(self.step_ms, 1e-3))))
        found = self.process.ask("turn", seconds, untimed=int(self.step_ms < WARM_MS), steps=steps)["ms"]
        self.ms += found
        self.medians.append(median(found))
        self.step_ms = self.medians[-1]
