"""How many steps lie between two checkpoints, so that a training step stays within the memory that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from snnc.backends.errors import MemoryNeededError

LISTED: Final = 0.08
"""Share of neurons that is taken to spike in a step: lists of spikes are kept of all steps."""


def predicted_bytes(description: Mapping[str, Any], steps: int, batch: int, segment: int) -> int:
    """Return the bytes that a training step is predicted to take, in segments of so many steps.

    Parameters
    ----------
    description
        ``project.json`` of the project.
    steps, batch
        T and B.
    segment
        Steps between two checkpoints; T: there are none.
    """
    memory = description["memory"]
    checkpoints = -(-steps // segment) if segment < steps else 0
    sample = (segment + 1) * memory["history"] + checkpoints * memory["checkpoint"]
    sample += steps * (memory["record"] + int(4 * LISTED * memory["listed"]))
    return int(memory["fixed"]) + batch * int(sample)


def segment_for(description: Mapping[str, Any], steps: int, batch: int, most: int) -> int:
    """Return the longest segment with which a training step is predicted to stay within `most` bytes.

    Raises
    ------
    MemoryNeededError
        There is none; the message says what the best one needs.
    """
    needed = {segment: predicted_bytes(description, steps, batch, segment) for segment in range(1, steps + 1)}
    fitting = [segment for segment, size in needed.items() if size <= most]
    if fitting:
        return max(fitting)
    best = min(needed, key=lambda segment: needed[segment])
    raise MemoryNeededError(
        f"{description['name']!r} with {steps} steps and a batch of {batch} is allowed {most / 2**20:.0f} MiB; with checkpoints every "
        f"{best} steps it needs {needed[best] / 2**20:.0f} MiB (predicted). Allow that, take a smaller batch or fewer steps."
    )
