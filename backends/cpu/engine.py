"""Engine that runs an emitted CPU project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from snnc.backends.native.processors import processors
from snnc.backends.native.sequence_engine import SequenceEngine
from snnc.compiler.ir.arrays.sizes import machine_memory


class CpuEngine(SequenceEngine):
    """Runs the shared library of a project; see :class:`~snnc.backends.native.sequence_engine.SequenceEngine`.

    `threads` is the number of threads that process samples; None: see :func:`threads_of`.
    """

    def __init__(self, library: Path, folder: Path, threads: int | None = None, memory: int | None = None) -> None:
        super().__init__(library, folder, memory)
        if threads is not None:
            self._setting("threads", threads)

    def _threads(self) -> int:
        return int(self.session.get("threads")[0])

    def _listed(self) -> Mapping[str, float]:
        profile = self.session.profile()
        listed: dict[str, float] = profile["listed"]
        return listed if profile["forward_runs"] + profile["train_runs"] else {}

    def _available_memory(self) -> tuple[int, str]:
        return machine_memory(), "this machine"


def threads_of(threads: int | None) -> int:
    """Return the number of threads of a session, as ``cpu_session.cpp`` chooses it.

    This is `threads`, else the environment variable ``SNNC_THREADS`` or ``OMP_NUM_THREADS``, else the number of processors.
    """
    if threads is not None:
        return threads
    for name in ("SNNC_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value):
            return int(value)
    return processors()
