"""What engines do alike whose native program keeps checkpoints, sums gradients of several steps and goes back from a given adjoint."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from pathlib import Path

import numpy as np

from snnc.backends.cpu.memory import UNSEEN, Needs, predicted_bytes, segment_for
from snnc.backends.engine import Array, Initial
from snnc.backends.events import Given
from snnc.backends.native import Role
from snnc.backends.sized_engine import SizedEngine


class Gather(IntEnum):
    """What a training step does of an update: the setting ``gather`` of the program."""

    ALONE = 0
    BEGINS = 1
    GOES_ON = 2
    CHANGES = 3


class SegmentedEngine(SizedEngine):
    """A sized engine with a bound on memory; a project whose loss is a ``GivenAdjoint`` runs under autograd.

    Attributes
    ----------
    device
        Number of the GPU whose memory it takes addresses of; None: the host's alone.

    Parameters
    ----------
    library, folder
        What was built of the project, and the project.
    memory
        Bytes that a training step may take; where it needs more, histories are kept between checkpoints only.
    """

    takes_events = True
    """Inputs may be :class:`~snnc.backends.events.Events`."""
    _shapeless: tuple[str, ...] = ("resume", "autograd", "gather", "whole")
    device: int | None = None

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

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        """See :class:`~snnc.backends.engine.GatheringEngine`."""
        loss = self.gather_parts(parts, samples)
        self.change_parameters(learning_rate)
        return loss

    def gather_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int) -> float:
        """See :class:`~snnc.backends.engine.SharingEngine`."""
        self._setting("whole", samples)
        loss, step = 0.0, Gather.BEGINS
        try:
            for inputs, target in parts:
                self._setting("gather", step)
                loss += self.train_batch(inputs, target, 0.0)
                step = Gather.GOES_ON
        finally:
            self._setting("gather", Gather.ALONE)
            self._setting("whole", 0)
        return loss

    def change_parameters(self, learning_rate: float) -> None:
        """See :class:`~snnc.backends.engine.SharingEngine`."""
        self.session.set("lr", np.array([learning_rate], dtype=np.float32))
        self._setting("gather", Gather.CHANGES)
        try:
            self.session.train_step()
        finally:
            self._setting("gather", Gather.ALONE)

    @property
    def fingerprint(self) -> str:
        """See :class:`~snnc.backends.engine.SharingEngine`."""
        return json.dumps({name: digest for name, digest in self.description["files"].items() if name != "weights.safetensors"})

    @property
    def gradient_elements(self) -> int:
        """See :class:`~snnc.backends.engine.SharingEngine`."""
        return sum(math.prod(info.shape) for info in self.session.with_role(Role.GRADIENT).values())

    def gradients_to(self, address: int) -> None:
        """See :class:`~snnc.backends.engine.SharingEngine`."""
        self._move_gradients(self.session.get_into, address)

    def gradients_from(self, address: int) -> None:
        """See :class:`~snnc.backends.engine.SharingEngine`."""
        self._move_gradients(self.session.set_from, address)

    def _move_gradients(self, move: Callable[[str, int, int], None], address: int) -> None:
        """Call `move` for each gradient with its place in memory that holds them one behind the other."""
        for name, info in self.session.with_role(Role.GRADIENT).items():
            elements = math.prod(info.shape)
            move(name, address, elements)
            address += elements * info.dtype.itemsize

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
        self._look()
        sizes = (self.description, steps, batch)
        chosen = self._segments.get(key)
        if chosen is None or predicted_bytes(*sizes, chosen, threads, self._activity) > self.memory:
            chosen = self._segments[key] = segment_for(*sizes, self.memory, threads, self._activity)
        return 0 if chosen == steps else chosen

    def least_memory(self, steps: int, batch: int) -> int:
        """Return the bytes of a training step in the segments that take least, by what sequences have shown so far."""
        self._look()
        sizes, threads = (self.description, steps, batch), self._threads()
        return min(predicted_bytes(*sizes, segment, threads, self._activity) for segment in range(1, steps + 1))

    def _look(self) -> None:
        """Remember what the last sequence listed."""
        self._activity = self._activity.with_sequence(Needs.of(self.description), self._listed())

    def _threads(self) -> int:
        """How many threads hold gradients of their own."""
        return 1

    def _listed(self) -> Mapping[str, float]:
        """Part of the numbers of each list that the last sequence listed."""
        return {}

    def _check_memory(self, steps: int, batch: int) -> None:
        if not self._segment(steps, batch):
            super()._check_memory(steps, batch)
