"""The iterations of a sequence cut into segments; only one segment has its history on the tiles at a time.

The history of the others is recomputed or stored in streaming memory. With iterations ``[0, K)`` and C of them in a
segment, segment s is ``[s C, min((s + 1) C, K))``. To run a segment again, populations need their
states at the boundary ``s C``, before their first step of the segment, and relays need the earlier steps that their
delays reach back to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Streamed: TypeAlias = Literal["off", "inputs", "boundaries", "history"]
"""The data of a segmented sequence outside the tiles: nothing; inputs, which the host sends segment by segment; these and, in
streaming memory, the initial states of segments; inputs and, in streaming memory, the histories of segments, so that nothing runs again.
"""


@dataclass(frozen=True)
class Segments:
    """The segmentation of a sequence.

    Attributes
    ----------
    steps, interval, iterations
        T, R, and the iterations of a sequence.
    length
        Iterations of a segment; 0 without segments.
    streamed
        The data outside the tiles.
    """

    steps: int
    interval: int
    iterations: int
    length: int
    streamed: Streamed = "off"

    @property
    def number(self) -> int:
        """Number of segments; 1 for an undivided sequence."""
        return -(-self.iterations // self.length) if self.length else 1

    @property
    def last(self) -> int:
        """Iterations of the last segment, whose history is still on the tiles when the backward pass begins."""
        return self.iterations - (self.number - 1) * self.length

    @property
    def reruns(self) -> bool:
        """Whether all segments except the last run a second time."""
        return self.length > 0 and self.streamed != "history"

    @property
    def rerun_iterations(self) -> int:
        """Iterations that run a second time: those of all segments except the last."""
        return (self.number - 1) * self.length if self.reruns else 0

    @property
    def steps_in_history(self) -> int:
        """Steps for which a population stores the values that its adjoint reads: the maximum in a segment."""
        return min(self.steps, -(-self.length // self.interval)) if self.length else self.steps

    def steps_streamed(self, least: int, most: int) -> int:
        """Return the steps that a relay stores of an input with bus lags from `least` to `most`: those that a segment reads."""
        if not self.length or self.streamed == "off":
            return self.steps
        return min(self.steps, -(-(self.length + most - least) // self.interval))

    @property
    def input_transfers(self) -> int:
        """Number of times that the host sends an input to the relays: once per run of a segment; histories include inputs."""
        return 1 if not self.length or self.streamed == "off" else self.number + self.reruns * (self.number - 1)

    def steps_relayed(self, lag: int) -> int:
        """Return the steps that a relay stores of a population with bus lags up to `lag`: those that a segment reads."""
        return min(self.steps, -(-(self.length - 1 + lag) // self.interval)) if self.length else self.steps

    def steps_before(self, lag: int) -> int:
        """Return the stored steps that a relay still sends after a boundary; its source sends the last step again."""
        return min(self.steps, -(-(lag - 1) // self.interval)) if self.reruns else 0

    @property
    def boundaries(self) -> int:
        """Boundaries whose states are stored on tiles: the start of the sequence and all others, or one at a time; 0 without segments."""
        if not self.length:
            return 0
        return {"boundaries": 2, "history": 1}.get(self.streamed, self.number)

    @property
    def boundaries_sent(self) -> int:
        """The boundaries among these that also need the last sent values."""
        return self.boundaries if self.reruns else 0

    @property
    def boundaries_with_steps(self) -> int:
        """Boundaries at which relays store steps that they still send; the start of the sequence has none."""
        return max(self.boundaries_sent - 1, 0)

    @property
    def rows(self) -> int:
        """Rows of streaming memory: one for each boundary, or for each stored history; 0 without any."""
        return {"boundaries": self.number, "history": self.number - 1}.get(self.streamed, 0) if self.length else 0
