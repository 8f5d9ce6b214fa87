"""An emitted CPU project as an engine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from snnc.backends.cpu.build import build_cpu
from snnc.backends.cpu.memory import segment_for
from snnc.backends.engine import Array, Initial
from snnc.backends.events import Events, Given
from snnc.backends.sized_engine import SizedEngine


class CpuEngine(SizedEngine):
    """Runs the shared library of a project; any number of steps and samples. See :class:`snnc.backends.engine.Engine`.

    Parameters
    ----------
    library, folder
        What :func:`~snnc.backends.cpu.build.build_cpu` made, and the project.
    threads
        How many own samples; by default ``SNNC_THREADS``, ``OMP_NUM_THREADS`` or all processors.
    memory
        Bytes that a training step may take; where it needs more, histories are kept between checkpoints only.
    """

    takes_events = True
    """Inputs may be :class:`~snnc.backends.events.Events`."""
    _shapeless = ("resume", "autograd", "gather", "whole")

    def __init__(self, library: Path, folder: Path, threads: int | None = None, memory: int | None = None) -> None:
        super().__init__(library, folder)
        self.memory = memory
        self._segments: dict[tuple[int, int, int], int] = {}
        if threads is not None:
            self._setting("threads", threads)

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """See :class:`~snnc.backends.engine.Engine`."""
        self._setting("autograd", 0)
        return super().forward(inputs, initial)

    def train_parts(self, parts: Iterable[tuple[Mapping[str, Array], Array]], samples: int, learning_rate: float) -> float:
        """See :class:`~snnc.backends.engine.GatheringEngine`."""
        self._setting("whole", samples)
        loss, seen = 0.0, 0
        try:
            for inputs, target in parts:
                first, seen = seen == 0, seen + len(target)
                last = seen >= samples
                self._setting("gather", {(True, True): 0, (True, False): 1, (False, False): 2, (False, True): 3}[first, last])
                loss += self.train_batch(inputs, target, learning_rate)
        finally:
            self._setting("gather", 0)
            self._setting("whole", 0)
        return loss

    def run_forward(self, inputs: Mapping[str, Given]) -> dict[str, Array]:
        """Run a sequence and keep what :meth:`run_backward` reads, in a project whose loss is a ``GivenAdjoint``."""
        self._set_inputs(inputs)
        self._set_initial({})
        self._setting("autograd", 1)
        self.session.run()
        return self._records()

    def run_backward(self, record: str, adjoint: Array) -> dict[str, Array]:
        """Return the gradients of parameters for the adjoint [T, B, *shape] of an output of the last :meth:`run_forward`."""
        self.session.set(f"d_{record}", adjoint)
        self.session.train_step()
        return self.gradients()

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

    def _memory_there(self) -> tuple[int, str]:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "this machine"

    def _set_arrays(self, inputs: Mapping[str, Given]) -> None:
        for info in self.description["inputs"]:
            given = inputs[info["tensor"]]
            if isinstance(given, Events):
                self.session.set_events(info["tensor"], given.begin, given.ids)
            else:
                self.session.set(info["tensor"], given)


def open_engine(folder: Path, threads: int | None = None, memory: int | None = None) -> CpuEngine:
    """Build the project in `folder` if needed and load it.

    Raises
    ------
    ToolMissingError, BuildError
        There is no C++ compiler, or it refuses the project.
    """
    return CpuEngine(build_cpu(folder), Path(folder), threads, memory)
