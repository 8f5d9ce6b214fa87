"""What engines do alike whose native program keeps checkpoints and goes back from a given adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from snnc.backends.cpu.memory import UNSEEN, Needs, predicted_bytes, segment_for
from snnc.backends.engine import Array, Initial
from snnc.backends.events import Given
from snnc.backends.sized_engine import SizedEngine


class SegmentedEngine(SizedEngine):
    """A sized engine with a bound on memory; a project whose loss is a ``GivenAdjoint`` runs under autograd.

    Parameters
    ----------
    library, folder
        What was built of the project, and the project.
    memory
        Bytes that a training step may take; where it needs more, histories are kept between checkpoints only.
    """

    takes_events = True
    """Inputs may be :class:`~snnc.backends.events.Events`."""
    _shapeless: tuple[str, ...] = ("resume", "autograd")

    def __init__(self, library: Path, folder: Path, memory: int | None = None) -> None:
        super().__init__(library, folder)
        self.memory = memory
        self._segments: dict[tuple[int, int, int], int] = {}
        self._activity = UNSEEN

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """See :class:`~snnc.backends.engine.Engine`."""
        self._setting("autograd", 0)
        return super().forward(inputs, initial)

    def run_forward(self, inputs: Mapping[str, Given]) -> None:
        """Run a sequence and keep what :meth:`run_backward` reads, in a project whose loss is a ``GivenAdjoint``."""
        self._set_inputs(inputs)
        self._set_initial({})
        self._setting("autograd", 1)
        self.session.run()

    def run_backward(self) -> None:
        """Go back from the last :meth:`run_forward`, whose output's adjoint was set."""
        self.session.train_step()

    def _settings_of(self, steps: int, batch: int) -> dict[str, int]:
        return super()._settings_of(steps, batch) | {"segment": self._segment(steps, batch)}

    def _segment(self, steps: int, batch: int) -> int:
        """Steps between two checkpoints; 0: there are none.

        The first one is chosen by an assumed activity. Between sequences it is shortened where what they listed tells that the bound would
        be passed.
        """
        if self.memory is None or not self.description["training"]:
            return 0
        key, threads = (steps, batch, self.memory), self._threads()
        self._activity = self._activity.with_sequence(Needs.of(self.description), self._listed())
        sizes = (self.description, steps, batch)
        chosen = self._segments.get(key)
        if chosen is None or predicted_bytes(*sizes, chosen, threads, self._activity) > self.memory:
            chosen = self._segments[key] = segment_for(*sizes, self.memory, threads, self._activity)
        return 0 if chosen == steps else chosen

    def least_memory(self, steps: int, batch: int) -> int:
        """Return the bytes of a training step in the segments that take least, by what sequences have shown so far."""
        sizes, threads = (self.description, steps, batch), self._threads()
        return min(predicted_bytes(*sizes, segment, threads, self._activity) for segment in range(1, steps + 1))

    def _threads(self) -> int:
        """How many threads hold gradients of their own."""
        return 1

    def _listed(self) -> Mapping[str, float]:
        """Part of the numbers of each list that the last sequence listed."""
        return {}

    def _check_memory(self, steps: int, batch: int) -> None:
        if not self._segment(steps, batch):
            super()._check_memory(steps, batch)
