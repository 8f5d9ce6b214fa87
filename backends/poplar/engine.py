"""An emitted Poplar project as an engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.native.engine import NativeEngine
from snnc.backends.native.library import Role
from snnc.backends.poplar.build import build_poplar
from snnc.backends.runtime.engine import Array, Initial


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

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.Engine`."""
        self._set_inputs(inputs)
        self._set_initial(initial)
        self.session.run()
        return {o["id"]: self._record(o, inputs, initial) for o in self.description["outputs"]}

    def run_backward(self, adjoint: Array) -> None:
        """See :class:`~snnc.backends.runtime.engine.AdjointEngine`."""
        self.session.set(self.description["adjoint"], adjoint)
        self.session.train_step()

    def counters(self) -> dict[str, int]:
        """Total dropped spikes, and by bus the spikes that were dropped (``b0_dropped``) or sent in further windows (``b0_further``)."""
        found = {name: int(self.session.get(name)[0]) for name in self.session.with_role(Role.COUNTER)}
        return {"dropped_spikes": sum(n for name, n in found.items() if name.endswith("_dropped")), **found}

    def _set_batch(self, inputs: Mapping[str, Array], target: Array) -> None:
        self._set_inputs(inputs)
        self.session.set("labels", target)

    def _set_inputs(self, inputs: Mapping[str, Array]) -> None:
        for info in self.description["inputs"]:
            if info["used"]:
                array = inputs[info["tensor"]]
                self.session.set(info["tensor"], array[0] if info["static"] else array)

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
