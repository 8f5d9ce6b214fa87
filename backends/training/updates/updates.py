"""Updates of a training run, made from whole batches, from batches in parts, or from this process's share of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from snnc.backends.runtime.engine import Array, Engine, GatheringEngine, accepts_next, accumulates
from snnc.backends.runtime.errors import TrainingOptionError
from snnc.backends.training.data.batches import Batch, BatchSamples
from snnc.backends.training.updates.ranks import Ranks

Upcoming: TypeAlias = Callable[[], Batch | None]
"""Function that returns the next batch of the epoch, or None at its end; a stream produces the batch on request."""


class Updates:
    """Makes the updates of a training run, one after another.

    The samples of an update are split into `accumulate` parts. `ranks` are the processes that share each batch; None: this process trains
    alone. Raises a TrainingOptionError if the engine cannot sum the gradients of several parts.
    """

    def __init__(self, engine: Engine, *, accumulate: int = 1, ranks: Ranks | None = None) -> None:
        self.engine = engine
        self.accumulate = accumulate
        self.ranks = ranks
        self.stop_requested: Callable[[], bool] = lambda: False
        """Whether this process must stop."""
        self._agreed = False
        """Whether all processes that train together must stop."""
        self._gathering: GatheringEngine | None = None
        if accumulate > 1:
            if not accumulates(engine):
                raise TrainingOptionError(
                    f"accumulate is {accumulate}, but this program changes parameters after each batch; compile it with an optimiser that "
                    "accumulates, as in 'adam:0.001,accumulate'. The targets 'cpu', 'cuda' and 'reference' always support it."
                )
            self._gathering = engine
        self._ahead: tuple[Batch, BatchSamples] | None = None
        """The next batch, if it was offered to the engine."""

    def make(self, batch: Batch, upcoming: Upcoming, learning_rate: float) -> float:
        """Make the update of a batch, and return its loss."""
        mine, parts = self._mine(batch), self._parts(batch, upcoming)
        if self.ranks is not None:
            loss = self.ranks.gather_parts(parts, batch.count, int(mine[0]) if len(mine) else 0)
            loss, self._agreed = self.ranks.update(loss, len(mine) > 0, learning_rate, self.stop_requested())
            return loss
        if self._gathering is not None:
            return self._gathering.train_parts(parts, batch.count, learning_rate)
        return self.engine.train_batch(*next(parts), learning_rate)

    @property
    def stopping(self) -> bool:
        """Whether training must stop after the last update; the same in all processes that train together."""
        return self.stop_requested() if self.ranks is None else self._agreed

    def _mine(self, batch: Batch) -> Array:
        positions = np.arange(batch.count)
        return positions if self.ranks is None else self.ranks.share(positions)

    def _parts(self, batch: Batch, upcoming: Upcoming) -> Iterator[BatchSamples]:
        """Yield this process's samples of a batch, in parts or at once; if at once, first offer the next batch to the engine."""
        mine = self._mine(batch)
        if self.accumulate > 1:
            yield from map(batch.samples_at, np.array_split(mine, min(self.accumulate, len(mine))) if len(mine) else ())
        elif len(mine):
            offered, samples = self._ahead or (None, None)
            now = samples if samples is not None and offered is batch else batch.samples_at(mine)
            self._offer_next(upcoming)
            yield now

    def _offer_next(self, upcoming: Upcoming) -> None:
        """Offer the next batch to the engine, if the engine can receive its inputs while this batch runs."""
        self._ahead = None
        if not accepts_next(self.engine):
            return
        following = upcoming()
        if following is not None and len(mine := self._mine(following)):
            self._ahead = following, following.samples_at(mine)
            self.engine.offer(*self._ahead[1])
