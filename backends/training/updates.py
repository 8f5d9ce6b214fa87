"""Updates of a training: from whole batches, from batches in parts, or from this process's share of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from snnc.backends.runtime.engine import Array, Engine, GatheringEngine, accepts_next, accumulates
from snnc.backends.runtime.errors import TrainingOptionError
from snnc.backends.training.loop import check_count
from snnc.backends.training.ranks import Ranks

Batch: TypeAlias = tuple[dict[str, Array], Array]
"""Inputs by id, [T, B, *shape], and targets [B]."""


class Updates:
    """Makes the updates of a training in sequence.

    Parameters
    ----------
    engine
        The engine that runs the batches.
    batch_of
        Function from samples (their indices) to their batch.
    accumulate
        Number of parts in which the samples of an update run.
    ranks
        Processes that share each batch; None: this one is alone.

    Raises
    ------
    TrainingOptionError
        The number of parts is invalid, or the engine cannot delay an update.
    """

    def __init__(self, engine: Engine, batch_of: Callable[[Array], Batch], *, accumulate: int = 1, ranks: Ranks | None = None) -> None:
        self.engine = engine
        self.batch_of = batch_of
        self.accumulate = accumulate
        self.ranks = ranks
        self.stop_requested: Callable[[], bool] = lambda: False
        """Whether this process must stop."""
        self._agreed = False
        """Whether the processes that train together are to stop."""
        self._gathering = gathering(engine, accumulate)
        self._ahead: list[Batch] = []
        """The next batch, where the engine was offered it."""

    def make(self, chosen: Array, following: Array | None, learning_rate: float) -> float:
        """Make the update of the samples `chosen`, and return its loss; `following` are those of the next one (None: there is none)."""
        if self.ranks is not None:
            mine = self.ranks.share(chosen)
            batches = self._batches(mine, None if following is None else self.ranks.share(following))
            loss = self.ranks.engine.gather_parts(batches, len(chosen))
            loss, self._agreed = self.ranks.update(loss, len(mine) > 0, learning_rate, self.stop_requested())
            return loss
        batches = self._batches(chosen, following)
        if self._gathering is not None:
            return self._gathering.train_parts(batches, len(chosen), learning_rate)
        return self.engine.train_batch(*next(batches), learning_rate)

    @property
    def stopping(self) -> bool:
        """Whether training must stop after the last update; all processes that train together agree."""
        return self.stop_requested() if self.ranks is None else self._agreed

    def _batches(self, chosen: Array, following: Array | None) -> Iterator[Batch]:
        """Yield the samples `chosen` in the order of execution: in parts, or at once, offering the following ones to the engine."""
        if self.accumulate > 1:
            yield from map(self.batch_of, np.array_split(chosen, min(self.accumulate, len(chosen))) if len(chosen) else ())
        elif len(chosen):
            now = self._ahead.pop() if self._ahead else self.batch_of(chosen)
            if following is not None and len(following) and accepts_next(self.engine):
                self._ahead.append(self.batch_of(following))
                self.engine.offer(*self._ahead[0])
            yield now


def gathering(engine: Engine, accumulate: int) -> GatheringEngine | None:
    """Return the engine if it must run updates in `accumulate` parts; None for one part.

    Raises
    ------
    TrainingOptionError
        It cannot, or the number of parts is invalid.
    """
    check_count("accumulate", accumulate, 1)
    if accumulate == 1:
        return None
    if not accumulates(engine):
        raise TrainingOptionError(
            f"accumulate is {accumulate}, but this program changes parameters after each batch; compile it with an optimizer that "
            "accumulates, as in 'adam:0.001,accumulate'. The targets 'cpu', 'cuda' and 'reference' always support it."
        )
    return engine
