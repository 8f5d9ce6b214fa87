"""An emitted Poplar project as an engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from snnc.backends.native.engine import NativeEngine
from snnc.backends.native.library import Role
from snnc.backends.poplar.build import build_poplar
from snnc.backends.runtime.engine import Array, Initial

Batch: TypeAlias = tuple[Mapping[str, Array], Array | None]
"""Inputs by id, and class indices for a training batch."""


class PoplarEngine(NativeEngine):
    """Runs the shared library of a project; see :class:`snnc.backends.runtime.engine.Engine`.

    Parameters
    ----------
    library, folder
        The library from :func:`~snnc.backends.poplar.build.build_poplar`, and the project.
    """

    @property
    def steps(self) -> int:
        """T of the plan."""
        return int(self.description["steps"])

    @property
    def batch(self) -> int:
        """B of the plan."""
        return int(self.description["batch"])

    def __init__(self, library: Path, folder: Path) -> None:
        super().__init__(library, folder)
        self._offered: Batch | None = None
        """What is sent while the next batch runs."""
        self._there: Batch | None = None
        """What was sent while the last one ran."""

    @property
    def accepts_next(self) -> bool:
        """See :class:`~snnc.backends.runtime.engine.AheadEngine`."""
        return bool(self.session.with_role(Role.NEXT))

    def offer(self, inputs: Mapping[str, Array], target: Array | None = None) -> None:
        """See :class:`~snnc.backends.runtime.engine.AheadEngine`."""
        self._offered = (inputs, target)

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        self._set_ahead(inputs, None)
        self._set_initial(initial)
        self.session.run()
        return {o["id"]: self._record(o, inputs, initial) for o in self.description["outputs"]}

    def counters(self) -> dict[str, int]:
        """Total dropped spikes, and by bus the spikes that were dropped (``b0_dropped``) or sent in further windows (``b0_further``)."""
        found = {name: int(self.session.get(name)[0]) for name in self.session.with_role(Role.COUNTER)}
        return {"dropped_spikes": sum(n for name, n in found.items() if name.endswith("_dropped")), **found}

    def _set_batch(self, inputs: Mapping[str, Array], target: Array) -> None:
        self._set_ahead(inputs, target)

    def _set_ahead(self, inputs: Mapping[str, Array], target: Array | None) -> None:
        """Set the current batch, if it has not arrived yet, and the offered one after it."""
        there, self._there, offered, self._offered = self._there, None, self._offered, None
        if there is None or there[0] is not inputs or there[1] is not target:
            self._set(inputs, target, "")
        if offered is not None and self.accepts_next:
            self._set(*offered, "_next")
            self._there = offered

    def _set_inputs(self, inputs: Mapping[str, Array]) -> None:
        self._set(inputs, None, "")

    def _set(self, inputs: Mapping[str, Array], target: Array | None, behind: str) -> None:
        for info in self.description["inputs"]:
            if info["used"]:
                array = inputs[info["tensor"]]
                self.session.set(f"{info['tensor']}{behind}", array[0] if info["static"] else array)
        if target is not None:
            self.session.set(f"labels{behind}", target)

    def _record(self, output: Mapping[str, Any], inputs: Mapping[str, Array], initial: Initial) -> Array:
        delay: int = output["delay"]
        if output["input"] is None:
            record = self.session.get(output["tensor"])
        else:
            record = np.zeros((self.steps, self.batch, int(np.prod(output["shape"]))), dtype=np.float32)
            record[delay:] = inputs[output["input"]].reshape(self.steps, self.batch, -1)[: self.steps - delay]
        before = initial.get((output["source"].rpartition("_")[0], output["source"]))
        if before is not None:
            record[:delay] = before.reshape(self.batch, -1)
        return record.reshape(self.steps, self.batch, *output["shape"])


def open_engine(folder: Path) -> PoplarEngine:
    """Build the project in `folder` if needed and load it.

    Raises
    ------
    ToolMissingError, BuildError
        There is no C++ compiler, or it refuses the project.
    """
    return PoplarEngine(build_poplar(folder), Path(folder))
