"""One engine during the measurement. Engines take turns: each times a few training steps in a row, then the next engine does."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from snnc.benchmarks.cpu.process import SECONDS, Process

TURN_MS: Final = 100.0
"""Desired duration of a turn in milliseconds, which determines its number of steps."""
MAX_STEPS: Final = 50
"""Maximum number of timed steps in a turn."""
WARM_MS: Final = 50.0
"""Milliseconds of a step below which an untimed step follows each reset of the weights: threads and caches are cold after other turns."""


@dataclass
class EngineProcess:
    """An engine that passed the check: its process and its measurements."""

    process: Process
    loss: float
    """Loss of the first step."""
    first_step_s: float
    """Seconds from the start of the build to the end of the first step."""
    ms: list[float] = field(default_factory=list)
    """Milliseconds of all timed steps."""
    medians: list[float] = field(default_factory=list)
    """Median of each turn, in milliseconds."""
    step_ms: float = 0.0
    """The latest median."""
    peak_mb: float = 0.0
    device_mb: float | None = None
    joules: float | None = None
    gradient_error: float = 0.0
    """`peak_mb`, `device_mb`, `joules` and `gradient_error`: see :func:`~snnc.benchmarks.cpu.rows.row`."""

    def turn(self, seconds: float = SECONDS) -> None:
        """Run one turn of at most `seconds`; raise ProcessError if the engine fails or takes longer."""
        steps = min(MAX_STEPS, max(1, math.ceil(TURN_MS / max(self.step_ms, 1e-3))))
        ms = self.process.ask("turn", seconds, untimed=int(self.step_ms < WARM_MS), steps=steps)["ms"]
        self.ms += ms
        self.medians.append(median(ms))
        self.step_ms = self.medians[-1]
