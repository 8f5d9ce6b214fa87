"""What engines do alike whose native program keeps checkpoints and goes back from a given adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from snnc.backends.cpu.memory import segment_for
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
        """Steps between two checkpoints; 0: there are none."""
        if self.memory is None or not self.description["training"]:
            return 0
        key = steps, batch, self.memory
        if key not in self._segments:
            found = segment_for(self.description, steps, batch, self.memory)
            self._segments[key] = 0 if found == steps else found
        return self._segments[key]

    def _check_memory(self, steps: int, batch: int) -> None:
        if not self._segment(steps, batch):
            super()._check_memory(steps, batch)
