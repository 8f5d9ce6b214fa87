"""An emitted CPU project as an engine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.cpu.build import build_cpu
from snnc.backends.cpu.memory import segment_for
from snnc.backends.engine import Array, Initial
from snnc.backends.errors import MemoryNeededError
from snnc.backends.events import Events, Given
from snnc.backends.native import NativeSession
from snnc.backends.native_engine import NativeEngine


class CpuEngine(NativeEngine):
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

    batch: int | None = None
    takes_events = True
    """Inputs may be :class:`~snnc.backends.events.Events`."""

    def __init__(self, library: Path, folder: Path, threads: int | None = None, memory: int | None = None) -> None:
        self.description: dict[str, Any] = json.loads((folder / "project.json").read_text())
        self.session = NativeSession(library, folder)
        self.steps: int | None = self.description["fixed_steps"]
        self._sizes: dict[str, int] = {}
        self._stepped = True
        self._defaults: dict[str, Array] = {}
        """Initial values that the last sequence changed, as they were before."""
        self.memory = memory
        self._segments: dict[tuple[int, int, int], int] = {}
        if threads is not None:
            self._setting("threads", threads)

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """See :class:`~snnc.backends.engine.Engine`."""
        self._set_inputs(inputs)
        self._set_initial(initial)
        self._setting("autograd", 0)
        self.session.run()
        return self._records()

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

    def reset(self, batch: int, initial: Initial) -> None:
        """See :class:`~snnc.backends.engine.SteppingEngine`."""
        self._setting("steps", 1)
        self._setting("batch", batch)
        self._setting("resume", 0)
        self._set_initial(initial)
        self._stepped = False

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """See :class:`~snnc.backends.engine.SteppingEngine`."""
        if not self._stepped:
            self._setting("resume", 0)
        self._set_arrays({id_: array[None] for id_, array in inputs.items()})
        self.session.run()
        self._setting("resume", 1)
        self._stepped = True
        return {id_: record[0] for id_, record in self._records().items()}

    def counters(self) -> dict[str, int]:
        """Nothing is ever dropped here."""
        return {"dropped_spikes": 0}

    def profile(self) -> dict[str, Any]:
        """What the program reports of itself."""
        return self.session.profile()

    def close(self) -> None:
        """See :class:`~snnc.backends.engine.Engine`."""
        self.session.close()

    def _setting(self, name: str, value: int) -> None:
        """Change a setting; sizes of tensors follow, and initial values are those of the file again where they do."""
        if self._sizes.get(name) == value:
            return
        self.session.set(name, np.array([value], dtype=np.int32))
        self._sizes[name] = value
        if name not in ("resume", "autograd"):
            self.session.refresh()
            self._defaults = {}

    def _set_inputs(self, inputs: Mapping[str, Given]) -> None:
        steps, batch = next(iter(inputs.values())).shape[:2]
        self._check_memory(steps, batch)
        for name, value in (("steps", steps), ("batch", batch), ("segment", self._segment(steps, batch)), ("resume", 0)):
            self._setting(name, value)
        self._set_arrays(inputs)

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
        """Refuse a sequence that the machine's memory cannot hold, before any of it is taken."""
        if self._segment(steps, batch):
            return
        needed = steps * batch * int(self.description["bytes_per_step"])
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if needed > there:
            raise MemoryNeededError(
                f"{self.description['name']!r} with {steps} steps and a batch of {batch} needs {needed / 2**30:.1f} GiB; this machine has "
                f"{there / 2**30:.1f} GiB. Take a smaller batch or fewer steps."
            )

    def _set_arrays(self, inputs: Mapping[str, Given]) -> None:
        for info in self.description["inputs"]:
            given = inputs[info["tensor"]]
            if isinstance(given, Events):
                self.session.set_events(info["tensor"], given.begin, given.ids)
            else:
                self.session.set(info["tensor"], given)

    def _records(self) -> dict[str, Array]:
        found = {}
        for o in self.description["outputs"]:
            record = self.session.get(o["tensor"])
            found[o["id"]] = record.reshape(*record.shape[:2], *o["shape"])
        return found

    def _set_initial(self, initial: Initial) -> None:
        wanted = {_initial_tensor(population, place): value for (population, place), value in initial.items()}
        for name, value in self._defaults.items():
            if name not in wanted:
                self.session.set(name, value)
        self._defaults = {name: value for name, value in self._defaults.items() if name in wanted}
        for name, value in wanted.items():
            if name in self.session.tensors:
                self._defaults.setdefault(name, self.session.get(name))
                self.session.set(name, value)


def _initial_tensor(population: str, place: str) -> str:
    """ABI name of an initial value: `place` is a canonical state or an output buffer."""
    return f"{place}_initial" if place.startswith(f"{population}_") else f"{population}_{place}_initial"


def open_engine(folder: Path, threads: int | None = None, memory: int | None = None) -> CpuEngine:
    """Build the project in `folder` if needed and load it.

    Raises
    ------
    ToolMissingError, BuildError
        There is no C++ compiler, or it refuses the project.
    """
    return CpuEngine(build_cpu(folder), Path(folder), threads, memory)
