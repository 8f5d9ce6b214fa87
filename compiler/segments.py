"""Recompute: the iterations of a sequence cut into segments, of which only one has its history on the tiles at a time.

With iterations ``[0, K)`` and C of them in a segment, segment s is ``[s C, min((s + 1) C, K))``. To run a segment again, populations need
their states at the boundary ``s C``, before their first step of the segment, and relays what they still show of the steps before it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Segments:
    """How a sequence is cut.

    Attributes
    ----------
    steps, interval, iterations
        T, R, and the iterations of a sequence.
    length
        Iterations of a segment; 0 where nothing runs again.
    """

    steps: int
    interval: int
    iterations: int
    length: int

    @property
    def number(self) -> int:
        """Segments; 1 without recompute."""
        return -(-self.iterations // self.length) if self.length else 1

    @property
    def last(self) -> int:
        """Iterations of the last segment, which runs once."""
        return self.iterations - self.again

    @property
    def again(self) -> int:
        """Iterations that run a second time: those of all segments but the last."""
        return (self.number - 1) * self.length

    @property
    def steps_kept(self) -> int:
        """Steps for which a population keeps what its adjoint reads: the most that a segment holds of them."""
        return min(self.steps, -(-self.length // self.interval)) if self.length else self.steps

    def steps_relayed(self, lag: int) -> int:
        """Steps that a relay keeps of a population whose buses have lags up to `lag`: those that a segment shows."""
        return min(self.steps, -(-(self.length - 1 + lag) // self.interval)) if self.length else self.steps

    def steps_behind(self, lag: int) -> int:
        """Steps in its store that it still shows behind a boundary; the last step comes from its source again."""
        return min(self.steps, -(-(lag - 1) // self.interval)) if self.length else 0

    @property
    def boundaries(self) -> int:
        """Boundaries at which states are kept, the start of the sequence among them; 0 without recompute."""
        return self.number if self.length else 0
