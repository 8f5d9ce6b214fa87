"""A superstep of a training step: its vertices, exchanges and copies, from which its cycles and bytes are predicted."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.compiler.tiles.cycles.load import Load
from snnc.compiler.tiles.exchange.traffic import ExchangeTraffic
from snnc.compiler.tiles.supersteps.streaming import RowCopy


@dataclass(frozen=True, eq=False)
class SuperstepDraft:
    """A superstep whose cycles are not yet predicted: its vertices and its exchange."""

    name: str
    """Name, which begins with the part of the training step and a colon."""
    runs: int  # number of times it runs in a training step
    load: Load
    traffic: ExchangeTraffic
    """The exchange before the superstep."""
    after: tuple[ExchangeTraffic, ...] = ()
    """Exchanges after the superstep, each with its own barrier."""
    local: float = 0.0
    """Cycles of copies inside tiles."""
    decisions: int = 0
    """Number of decisions in the superstep whether a loop runs again (for further windows); all tiles wait for each."""
    row: RowCopy | None = None
    """Copies of the superstep from or to streaming memory."""
    repeats: bool = False
    """Whether the superstep repeats an earlier one, so that the code of its exchange exists already."""

    @property
    def part(self) -> str:
        """Part of the training step: "forward", "loss", "recompute", "backward" or "update"."""
        return self.name.partition(":")[0]
