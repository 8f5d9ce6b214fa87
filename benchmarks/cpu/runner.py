"""One engine during the measurement: its turns and their times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from snnc.benchmarks.cpu.process import SECONDS, Process

TURN_MS: Final = 100.0
"""Approximate milliseconds of a turn; it times as many steps in a row as fit, as in a training loop."""
MAX_STEPS: Final = 50
"""Maximum number of timed steps in a turn."""
WARM_MS: Final = 50.0
"""Steps shorter than this are preceded by an untimed one, because threads and caches are cold after other engines' turns."""


@dataclass
class EngineProcess:
    """An engine that passed the check: its process and its measurements."""

    process: Process
    loss: float
    first_step_s: float
    ms: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    step_ms: float = 0.0
    peak_mb: float = 0.0
    device_mb: float | None = None
    joules: float | None = None
    gradient_error: float = 0.0

    def turn(self, seconds: float = SECONDS) -> None:
        """Run one turn of at most `seconds`.

        Raises
        ------
        ProcessError
            The engine failed, or took longer.
        """
        steps = min(MAX_STEPS, max(1, math.ceil(TURN_MS / max(self.step_ms, 1e-3))))
        found = self.process.ask("turn", seconds, untimed=int(self.step_ms < WARM_MS), steps=steps)["ms"]
        self.ms += found
        self.medians.append(median(found))
        self.step_ms = self.medians[-1]
