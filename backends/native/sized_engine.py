"""Base of engines whose native program takes any number of steps and samples: sizes are settings, shapes follow them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.native.engine import NativeEngine
from snnc.backends.runtime.engine import Array, Initial
from snnc.backends.runtime.errors import MemoryNeededError


class SizedEngine(NativeEngine):
    """Runs the shared library of a project; any number of steps and samples. See :class:`snnc.backends.runtime.engine.Engine`.

    Parameters
    ----------
    library, folder
        The project's shared library, and the project.
    """

    batch: int | None = None
    _shapeless: tuple[str, ...] = ("resume",)
    """Settings that change no shape."""

    def __init__(self, library: Path, folder: Path) -> None:
        super().__init__(library, folder)
        self.steps: int | None = self.description["fixed_steps"]
        self._sizes: dict[str, int] = {}
        self._stepped = True

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        self._set_inputs(inputs)
        self._set_initial(initial)
        self.session.run()
        return self._records()

    def reset(self, batch: int, initial: Initial) -> None:
        """See :class:`~snnc.backends.runtime.engine.SteppingEngine`."""
        self._setting("steps", 1)
        self._setting("batch", batch)
        self._setting("resume", 0)
        self._set_initial(initial)
        self._stepped = False

    def step(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.SteppingEngine`."""
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

    @abstractmethod
    def _memory_there(self) -> tuple[int, str]:
        """Maximum bytes of a sequence, and the owner of that memory."""

    def _setting(self, name: str, value: int) -> None:
        """Change a setting; sizes of tensors follow, and tensors with a new size have the file's initial values again."""
        if self._sizes.get(name) == value:
            return
        self.session.set(name, np.array([value], dtype=np.int32))
        self._sizes[name] = value
        if name not in self._shapeless:
            self.session.refresh()
            self._defaults = {}

    def _set_inputs(self, inputs: Mapping[str, Any]) -> None:
        steps, batch = next(iter(inputs.values())).shape[:2]
        self._check_memory(steps, batch)
        for name, value in (*self._settings_of(steps, batch).items(), ("resume", 0)):
            self._setting(name, value)
        self._set_arrays(inputs)

    def _settings_of(self, steps: int, batch: int) -> dict[str, int]:
        """Settings before a sequence of that size."""
        return {"steps": steps, "batch": batch}

    def _check_memory(self, steps: int, batch: int) -> None:
        """Refuse a sequence that does not fit the memory, before allocating any."""
        needed = steps * batch * int(self.description["bytes_per_step"])
        there, whose = self._memory_there()
        if needed > there:
            raise MemoryNeededError(
                f"{self.description['name']!r} with {steps} steps and a batch of {batch} needs {needed / 2**30:.1f} GiB; {whose} has "
                f"{there / 2**30:.1f} GiB. Take a smaller batch or fewer steps."
            )

    def _set_arrays(self, inputs: Mapping[str, Any]) -> None:
        """Set all inputs: arrays, or other types that the engine accepts."""
        for info in self.description["inputs"]:
            self.session.set(info["tensor"], inputs[info["tensor"]])

    def _records(self) -> dict[str, Array]:
        found = {}
        for o in self.description["outputs"]:
            record = self.session.get(o["tensor"])
            found[o["id"]] = record.reshape(*record.shape[:2], *o["shape"])
        return found
