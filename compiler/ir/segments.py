"""Division of the iterations of a sequence into segments; only one segment at a time has its history on the tiles.

The histories of the other segments are recomputed, or stored in streaming memory. With iterations ``[0, K)`` and C iterations per segment,
segment s is ``[s C, min((s + 1) C, K))``. To run a segment again, populations need their states at the boundary ``s C``, before their first
step of the segment. Relays need the earlier steps that they still have to send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Streamed: TypeAlias = Literal["off", "inputs", "boundaries", "history"]
"""Data of a segmented sequence stored outside the tiles: nothing; "inputs", which the host sends segment by segment; "boundaries", also the
initial states of segments, in streaming memory; "history", inputs and the histories of segments, so that no segment is recomputed.
"""


@dataclass(frozen=True)
class Segments:
    """Division of a sequence into segments."""

    # Number of time steps T, iterations per step R, and number of iterations of the sequence.
    steps: int
    interval: int
    iterations: int
    length: int  # number of iterations per segment; 0 without segments
    streamed: Streamed = "off"  # data stored outside the tiles

    @property
    def number(self) -> int:
        """Number of segments; 1 for an undivided sequence."""
        return -(-self.iterations // self.length) if self.length else 1

    @property
    def last(self) -> int:
        """Number of iterations of the last segment, whose history is still on the tiles when the backward pass begins."""
        return self.iterations - (self.number - 1) * self.length

    @property
    def reruns(self) -> bool:
        """Whether all segments except the last run a second time."""
        return self.length > 0 and self.streamed != "history"

    @property
    def rerun_iterations(self) -> int:
        """Number of iterations that run a second time: those of all segments except the last."""
        return (self.number - 1) * self.length if self.reruns else 0

    @property
    def steps_in_history(self) -> int:
        """Maximum number of steps per segment for which a population stores the values that its adjoint reads."""
        return min(self.steps, -(-self.length // self.interval)) if self.length else self.steps

    def steps_streamed(self, least: int, most: int) -> int:
        """Return the number of steps of an input that a relay stores: those that a segment reads over buses of lags `least` to `most`."""
        if not self.length or self.streamed == "off":
            return self.steps
        return min(self.steps, -(-(self.length + most - least) // self.interval))

    @property
    def input_transfers(self) -> int:
        """Number of times that the host sends an input to the relays: 1 if they store the whole input, else one per run of a segment."""
        return 1 if not self.length or self.streamed == "off" else self.number + self.reruns * (self.number - 1)

    def steps_relayed(self, lag: int) -> int:
        """Return the number of steps of a population that a relay stores: those that a segment reads over buses of lags up to `lag`."""
        return min(self.steps, -(-(self.length - 1 + lag) // self.interval)) if self.length else self.steps

    def steps_before(self, lag: int) -> int:
        """Return the number of steps before a boundary that a relay sends after it, without the last step, which the source sends again."""
        return min(self.steps, -(-(lag - 1) // self.interval)) if self.reruns else 0

    @property
    def boundaries(self) -> int:
        """Number of boundaries whose states are on tiles at a time: one per segment, including the start of the sequence.

        2 if boundaries are stored in streaming memory, 1 if histories are, and 0 without segments.
        """
        if not self.length:
            return 0
        return {"boundaries": 2, "history": 1}.get(self.streamed, self.number)

    @property
    def boundaries_sent(self) -> int:
        """Number of :attr:`boundaries` that also store the last sent values."""
        return self.boundaries if self.reruns else 0

    @property
    def boundaries_with_steps(self) -> int:
        """Number of :attr:`boundaries_sent` at which relays store steps that they still send: all but the start of the sequence."""
        return max(self.boundaries_sent - 1, 0)

    @property
    def rows(self) -> int:
        """Number of rows in streaming memory: one per boundary or per stored history; 0 if it is unused."""
        return {"boundaries": self.number, "history": self.number - 1}.get(self.streamed, 0) if self.length else 0
